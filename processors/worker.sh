#!/bin/sh
# A processor in shell (curl, jq, coreutils): runs COMMAND for each job of DEFINITION, one at a time. The payload is its
# input; what it prints is the result, what it says on standard error the error. SIGTERM is its request to stop.
#   HASCHEDULER_URL=http://127.0.0.1:8080 HASCHEDULER_TOKEN=hsk_… worker.sh DEFINITION COMMAND [ARGUMENT…]
set -eu
definition=$1
shift
dir=$(mktemp -d)
trap 'kill $(jobs -p) 2>/dev/null; rm -rf "$dir"' EXIT
trap 'exit 1' HUP INT TERM

ask() { # PATH BODY: the answer, tried for a minute (or $within seconds); fails where it is refused. Repeats are harmless.
    curl --silent --show-error --fail --retry 99 --retry-connrefused --retry-max-time "${within:-60}" \
        --max-time "${within:-90}" --header "Content-Type: application/json" \
        ${HASCHEDULER_TOKEN:+--header "Authorization: Bearer $HASCHEDULER_TOKEN"} \
        --data "$2" "${HASCHEDULER_URL:-http://127.0.0.1:8080}/v1/work/$1"
}

beats() { # shows life while the command runs, and stops it when somebody asks for that, or nobody answers
    within=$(jq '.heartbeat_deadline / 2' "$dir/terms")
    while sleep "$(jq .heartbeat_interval "$dir/terms")"; do
        ask heartbeat "$(jq -c '{processor, running: [{job, attempt}]}' "$dir/attempt")" >"$dir/answer" &&
            jq -e '.cancelled + .revoked == []' "$dir/answer" >/dev/null && continue
        jq -e '.cancelled != []' "$dir/answer" >/dev/null && echo cancelled >"$dir/stopped" || echo revoked >"$dir/stopped"
        kill "$1"
        break
    done
}

ask processors "$(jq -nc --arg it "$definition" '{name: $it, definitions: [$it]}')" >"$dir/terms"
while ask fetch "$(jq -c '{processor, wait: "20s", limit: 1}' "$dir/terms")" >"$dir/fetched"; do
    jq -ec '.attempts[0] + {processor: input.processor} | select(.job)' "$dir/fetched" "$dir/terms" >"$dir/attempt" || continue
    ask start "$(cat "$dir/attempt")" >"$dir/job" || continue # it is not ours any more
    rm -f "$dir/stopped"
    jq -c .payload "$dir/job" >"$dir/payload"
    timeout "$(jq '.timeout // 0' "$dir/job")" "$@" <"$dir/payload" >"$dir/out" 2>"$dir/err" &
    command=$!
    beats "$command" 2>/dev/null &
    beats=$!
    code=0
    wait "$command" || code=$?
    kill "$beats" 2>/dev/null || true
    case "$(cat "$dir/stopped" 2>/dev/null || echo "$code")" in
    revoked) continue ;;
    cancelled) end='{outcome: "cancelled"}' ;;
    0) end='{outcome: "succeeded", result: ($out | fromjson? // $out)}' ;;
    *) end='{outcome: "failed", error: "exit code \($code): \($err)"}' ;;
    esac
    ask finish "$(jq -c --rawfile out "$dir/out" --rawfile err "$dir/err" --arg code "$code" ". + $end" "$dir/attempt")" || true
done

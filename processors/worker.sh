#!/bin/sh
# A processor in shell (curl, jq, coreutils): runs COMMAND for each job of DEFINITION, one at a time. Its
# standard input is the payload, its output the result, its standard error the error. SIGTERM stops it.
#   HASCHEDULER_URL=http://127.0.0.1:8080 HASCHEDULER_TOKEN=hsk_… worker.sh DEFINITION COMMAND [ARGUMENT…]
set -eu
definition=$1
shift
dir=$(mktemp -d)
trap 'kill $(jobs -p) 2>/dev/null; rm -rf "$dir"' EXIT
trap 'exit 1' HUP INT TERM

ask() { # PATH BODY [OPTION…]: print the answer, retry for a minute; fail if refused. Every request may be repeated.
    path=$1
    printf '%s' "$2" >"$dir/$path.body" # not an argument, which may not be as long
    shift 2
    for _ in 1 2 3 4 5; do
        curl --silent --show-error --fail --max-time 90 --retry 99 --retry-connrefused --retry-max-time 60 "$@" \
            --header "Content-Type: application/json" --dump-header "$dir/$path.head" \
            ${HASCHEDULER_TOKEN:+--header "Authorization: Bearer $HASCHEDULER_TOKEN"} \
            --data "@$dir/$path.body" "${HASCHEDULER_URL:-http://127.0.0.1:8080}/v1/work/$path" && return
        case $? in 18 | 52 | 55 | 56) sleep 1 ;; *) return 1 ;; esac # connections cut off in the middle
    done
    return 1
}

beats() { # COMMAND: send heartbeats while it runs; stop it on request, or if no replica answers any more
    interval=$(jq .heartbeat_interval "$dir/terms")
    left=$most
    while [ "$left" -gt 0 ] && sleep "$interval" && kill -0 $$; do # only while this script lives
        ask heartbeat "$(jq -c '{processor, running: [{job, attempt}]}' "$dir/attempt")" --retry 0 --max-time "$interval" \
            >"$dir/answer" || { left=$((left - 1)) && continue; }
        left=$most
        why=$(jq -r 'if .revoked != [] then "revoked" elif .cancelled != [] then "cancelled" else empty end' "$dir/answer")
        [ -z "$why" ] || break
    done
    echo "${why:-lost}" >"$dir/stopped"
    kill "$1"
}

register() {
    ask processors "$(jq -nc --arg it "$definition" '{name: $it, definitions: [$it]}')" >"$dir/terms" &&
        most=$(jq '.heartbeat_deadline / .heartbeat_interval / 2 | floor' "$dir/terms")
}

fetch() { # the next attempt; register again if told so by 404, as jobs may wait in another shard
    ask fetch "$(jq -c '{processor, wait: "20s", limit: 1}' "$dir/terms")" >"$dir/fetched" && return
    case "$(grep '^HTTP/' "$dir/fetch.head" | tail -n 1)" in *" 404"*) ;; *) return 1 ;; esac
    register && echo '{"attempts": []}' >"$dir/fetched"
}

register
while fetch; do
    jq -ec '.attempts[0] + {processor: input.processor} | select(.job)' "$dir/fetched" "$dir/terms" \
        >"$dir/attempt" || continue
    if ! ask start "$(cat "$dir/attempt")" >"$dir/job"; then # lost to another processor, or unknown
        ask finish "$(jq -c '. + {outcome: "given_back"}' "$dir/attempt")"
        continue
    fi
    rm -f "$dir/stopped"
    jq -c .payload "$dir/job" >"$dir/payload"
    timeout "$(jq '.timeout // 0' "$dir/job")" "$@" <"$dir/payload" >"$dir/out" 2>"$dir/err" &
    command=$!
    beats "$command" &
    beats=$!
    code=0
    wait "$command" || code=$?
    kill "$beats" 2>/dev/null || true
    case "$(cat "$dir/stopped" 2>/dev/null || echo "$code")" in
    lost) exit 1 ;; # another processor gets the job, or has it already
    revoked) continue ;;
    cancelled) end='{outcome: "cancelled"}' ;;
    0) end='{outcome: "succeeded", result: ($out | fromjson? // $out)}' ;;
    *) end='{outcome: "failed", error: "exit code \($code): \($err)"}' ;;
    esac
    ask finish "$(jq -c --rawfile out "$dir/out" --rawfile err "$dir/err" --arg code "$code" ". + $end" "$dir/attempt")" ||
        ask finish "$(jq -c '. + {outcome: "failed", retryable: false, error: "the result was refused"}' "$dir/attempt")"
done >/dev/null

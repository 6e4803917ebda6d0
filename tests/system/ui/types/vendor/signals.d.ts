export interface Signal<T> {
  value: T;
}
export function signal<T>(initial: T): Signal<T>;
export function computed<T>(make: () => T): Readonly<Signal<T>>;
export function effect(run: () => void): () => void;
export function useSignal<T>(initial: T): Signal<T>;
export function useComputed<T>(make: () => T): Readonly<Signal<T>>;

export interface Signal<T> {
  value: T;
}
export function signal<T>(initial: T): Signal<T>;
export function computed<T>(make: () => T): Readonly<Signal<T>>;

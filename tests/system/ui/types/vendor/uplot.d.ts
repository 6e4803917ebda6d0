declare class UPlot {
  static paths: { bars(options: { size: [number, number] }): unknown };
  constructor(options: unknown, data: unknown, parent: Element);
  setData(data: unknown): void;
  setSize(size: { width: number; height: number }): void;
  destroy(): void;
}
export default UPlot;

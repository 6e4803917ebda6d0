declare const htm: {
  bind(h: (type: unknown, props: unknown, ...children: unknown[]) => unknown): (
    strings: TemplateStringsArray,
    ...values: unknown[]
  ) => unknown;
};
export default htm;

// Frames as src/serve/frame.rs lays them out, and the stream that they come in.

export const VERSION = 1;
export const KIND = {
  target: 1, prediction: 2, error: 3, oneTap: 4, equalised: 5, nmse: 6, dots: 7, curve: 8, taps: 9, tapsOfRun: 10, members: 11, membersOfRun: 12,
};

/** The sections of a frame: kind, filter, sample, numbers. */
export function decode(buffer) {
  const view = new DataView(buffer);
  const sections = [];
  for (let at = 0; at + 16 <= buffer.byteLength;) {
    if (view.getUint8(at) !== VERSION) throw new Error(`frames of version ${view.getUint8(at)}, this page knows ${VERSION}: reload it`);
    const count = view.getUint32(at + 4, true);
    sections.push({
      kind: view.getUint8(at + 1),
      filter: view.getUint16(at + 2, true),
      sample: Number(view.getBigUint64(at + 8, true)),
      numbers: new Float32Array(buffer.slice(at + 16, at + 16 + 4 * count)),
    });
    at += 16 + 4 * count;
  }
  return sections;
}

/** The rows of a table: at is the index of the sample, values what it holds. */
export function rows({ sample, numbers }) {
  const width = numbers[0];
  const found = [];
  for (let i = 1; i + width < numbers.length; i += width + 1) {
    found.push({ at: sample - numbers[i], values: numbers.subarray(i + 1, i + 1 + width) });
  }
  return found;
}

/** Reads frames until the stream ends, which is an error unless it was aborted. Of several that have come at once, the newest is shown. */
export async function follow(response, show) {
  const reader = response.body.getReader();
  let bytes = new Uint8Array(0);
  for (;;) {
    const { done, value } = await reader.read();
    if (done) throw new Error('the stream has ended');
    const joined = new Uint8Array(bytes.length + value.length);
    joined.set(bytes);
    joined.set(value, bytes.length);
    bytes = joined;
    let newest = null;
    while (bytes.length >= 4) {
      const length = new DataView(bytes.buffer, bytes.byteOffset).getUint32(0, true);
      if (bytes.length < 4 + length) break;
      newest = bytes.slice(4, 4 + length).buffer;
      bytes = bytes.subarray(4 + length);
    }
    if (newest?.byteLength) show(decode(newest));
  }
}

// Ids as they travel: 16 bits each, little endian (widget.py, vocabulary.py).

/** The ids in bytes, which are a view or a buffer. */
export function idsOf(bytes) {
  const view = ArrayBuffer.isView(bytes)
    ? new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    : new DataView(bytes);
  const ids = new Uint16Array(view.byteLength / 2);
  for (let i = 0; i < ids.length; i += 1) ids[i] = view.getUint16(2 * i, true);
  return ids;
}

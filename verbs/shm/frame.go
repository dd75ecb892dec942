package shm

import "encoding/binary"

// encode writes the four fields of a frame to its header, in native byte order. Both sides are on one machine.

func (f *frame) encode(header *[frameHeader]byte) {
	binary.NativeEndian.PutUint32(header[0:], f.length)
	binary.NativeEndian.PutUint32(header[4:], f.flags)
	binary.NativeEndian.PutUint32(header[8:], f.immediate)
	binary.NativeEndian.PutUint32(header[12:], f.written)
}

func (f *frame) decode(header *[frameHeader]byte) {
	f.length = binary.NativeEndian.Uint32(header[0:])
	f.flags = binary.NativeEndian.Uint32(header[4:])
	f.immediate = binary.NativeEndian.Uint32(header[8:])
	f.written = binary.NativeEndian.Uint32(header[12:])
}

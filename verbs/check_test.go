package verbs_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/onesided/rma/verbs"
)

func TestCheckSend(t *testing.T) {
	a := verbs.Attributes{Name: "card", MaxInline: 4, MaxSegments: 2, MaxMessage: 100}
	of := func(sizes ...int) (segments []verbs.Segment) {
		for _, size := range sizes {
			segments = append(segments, verbs.Segment{Memory: make([]byte, size)})
		}
		return segments
	}
	for _, c := range []struct {
		request verbs.SendRequest
		length  int
		text    string
	}{
		{verbs.SendRequest{}, 0, ""},
		{verbs.SendRequest{Opcode: verbs.OpRDMARead, Flags: verbs.Signalled | verbs.Fence, Segments: of(60, 40)}, 100, ""},
		{verbs.SendRequest{Opcode: verbs.OpRDMAWriteImmediate, Flags: verbs.Inline, Segments: of(3, 1)}, 4, ""},
		{verbs.SendRequest{Opcode: verbs.OpCompareSwap, Segments: of(8)}, 8, ""},
		{verbs.SendRequest{Opcode: verbs.OpReceive}, 0, "opcode 7 is none of a send queue"},
		{verbs.SendRequest{Flags: verbs.Fence << 1}, 0, "flags 0x8, known are 0x7"},
		{verbs.SendRequest{Segments: of(1, 1, 1)}, 0, "3 segments, at most 2 are allowed"},
		{verbs.SendRequest{Segments: of(60, 41)}, 0, "more than 100 bytes"},
		{verbs.SendRequest{Flags: verbs.Inline, Segments: of(5)}, 0, "an inline request is a send or write of at most 4 bytes, this is opcode 0 of 5"},
		{verbs.SendRequest{Opcode: verbs.OpRDMARead, Flags: verbs.Inline, Segments: of(1)}, 0, "an inline request is a send or write of at most 4 bytes, this is opcode 4 of 1"},
		{verbs.SendRequest{Opcode: verbs.OpFetchAdd, Segments: of(4, 4)}, 0, "an atomic has one segment of 8 bytes, this has 2 of 8"},
		{verbs.SendRequest{Opcode: verbs.OpFetchAdd, Segments: of(4)}, 0, "an atomic has one segment of 8 bytes, this has 1 of 4"},
	} {
		length, err := a.CheckSend(&c.request)
		var wrong *verbs.ArgumentError
		switch {
		case c.text == "":
			if err != nil || length != c.length {
				t.Errorf("%+v has %d bytes, %v; want %d", c.request, length, err, c.length)
			}
		case !errors.As(err, &wrong) || !strings.HasSuffix(err.Error(), c.text) || !strings.HasPrefix(err.Error(), "card: PostSend: "):
			t.Errorf("%+v: %v, want %q", c.request, err, c.text)
		}
	}
}

package proof_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/proof"
)

func TestClass(t *testing.T) {
	own := errors.New("the caller's")
	for _, c := range []struct {
		class string
		errs  []error
	}{
		{own.Error(), []error{own, fmt.Errorf("of 7 bytes: %w", own)}},
		{proof.ErrKey.Error(), []error{proof.ErrKey}},
		{os.ErrDeadlineExceeded.Error(), []error{&net.OpError{Op: "read", Err: os.ErrDeadlineExceeded}}},
		{"the connection ended", []error{io.EOF, io.ErrUnexpectedEOF, &net.OpError{Op: "read", Err: os.NewSyscallError("read", syscall.ECONNRESET)}, syscall.EPIPE}},
		{"another failure", []error{errors.New("one"), errors.New("two")}},
	} {
		for _, err := range c.errs {
			require.Equal(t, c.class, proof.Class(err, own), "%v", err)
		}
	}
}

// All errors about the first bytes of unproven peers have one class, although the text quotes the bytes.
func TestClassOfWhatStrangersSay(t *testing.T) {
	classes := map[string]bool{}
	for i := range 100 {
		hello := fmt.Appendf(nil, "%02dstranger%032d", i, i)
		err := proof.Accept(bytes.NewBuffer(hello), make([]byte, proof.MinKey), "any")
		classes[proof.Class(err)] = true
	}
	require.Len(t, classes, 1)
	require.Contains(t, classes, proof.ErrProtocol.Error())
}

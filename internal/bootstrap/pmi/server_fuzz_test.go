package pmi

import (
	"bufio"
	"net"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/allocs"
)

// converse sends lines to a server of one rank, and returns its responses.
func converse(t *testing.T, lines ...string) []string {
	t.Helper()
	near, far := net.Pipe()
	s := NewServer(1, Events{})
	s.job(0).name = "kvs"
	s.Serve(far, 0)
	go func() {
		_, _ = near.Write([]byte(strings.Join(lines, "\n") + "\n"))
		// Finalize ends the connection after requests without a response.
		_, _ = near.Write([]byte("cmd=finalize\n"))
	}()
	var responses []string
	for scanner := bufio.NewScanner(near); scanner.Scan(); {
		responses = append(responses, scanner.Text())
		if scanner.Text() == "cmd=finalize_ack" {
			require.NoError(t, near.Close())
		}
	}
	require.NoError(t, s.Close())
	return responses
}

// FuzzServer plays a rank that sends arbitrary bytes.
func FuzzServer(f *testing.F) {
	f.Add([]byte("cmd=init\ncmd=put kvsname=kvs key=a value=b\ncmd=barrier_in\ncmd=get kvsname=kvs key=a\n"))
	f.Add([]byte("cmd=init\ncmd=abort exitcode=x\ncmd=barrier_in\ncmd=barrier_in\n"))
	f.Add([]byte(strings.Repeat("cmd=init ", 1000)))
	f.Fuzz(func(t *testing.T, says []byte) {
		near, far := net.Pipe()
		s := NewServer(2, Events{})
		s.job(0).name = "kvs"
		require.LessOrEqual(t, allocs.Of(func() {
			s.Serve(far, 0)
			go func() {
				_, _ = near.Write(says)
				_ = near.Close()
			}()
			for scanner := bufio.NewScanner(near); scanner.Scan(); {
				_, err := parse(scanner.Text())
				require.NoError(t, err)
			}
			require.NoError(t, s.Close())
		}), mostAllocated+64*len(says))
	})
}

package pmi

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/allocs"
)

// A dialogue is the lines that a manager receives and sends. "> " begins a line from the client, "< " a line to the
// client.
type dialogue []string

// play plays the manager's side of a dialogue.
func (d dialogue) play(conn net.Conn) error {
	lines := bufio.NewScanner(conn)
	for _, line := range d {
		if text, ok := strings.CutPrefix(line, "< "); ok {
			if _, err := fmt.Fprintln(conn, text); err != nil {
				// The client has closed the connection.
				return nil
			}
			continue
		}
		if !lines.Scan() {
			return fmt.Errorf("the connection ended where %q was to come: %v", line, lines.Err())
		}
		if got, want := lines.Text(), strings.TrimPrefix(line, "> "); got != want {
			return fmt.Errorf("heard %q, want %q", got, want)
		}
	}
	return nil
}

// withManager runs use against a dialogue.
func withManager(t *testing.T, d dialogue, use func(c *Client) error) error {
	t.Helper()
	near, far := net.Pipe()
	played := make(chan error, 1)
	go func() {
		err := d.play(far)
		_ = far.Close()
		played <- err
	}()
	c, err := New(near, 1, 4)
	if err == nil {
		err = errors.Join(use(c), c.Close())
	}
	if heard := <-played; heard != nil {
		t.Errorf("manager: %v", heard)
	}
	return err
}

var (
	hydra = dialogue{
		"> cmd=init pmi_version=1 pmi_subversion=1",
		"< cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0",
		"> cmd=get_my_kvsname",
		"< cmd=my_kvsname kvsname=kvs_17_0_3_node7",
		"> cmd=put kvsname=kvs_17_0_3_node7 key=a value=1:v",
		"< cmd=put_result rc=0 msg=success",
		"> cmd=barrier_in",
		"< cmd=barrier_out",
		"> cmd=get kvsname=kvs_17_0_3_node7 key=a",
		"< cmd=get_result rc=0 msg=success value=1:v",
		"> cmd=get kvsname=kvs_17_0_3_node7 key=b",
		"< cmd=get_result rc=-1 msg=key_b_not_found value=unknown",
		"> cmd=finalize",
		"< cmd=finalize_ack",
	}
	slurm = dialogue{
		"> cmd=init pmi_version=1 pmi_subversion=1",
		"< cmd=response_to_init rc=0 pmi_version=1 pmi_subversion=1",
		"> cmd=get_my_kvsname",
		"< cmd=my_kvsname rc=0 kvsname=3.0",
		"> cmd=put kvsname=3.0 key=a value=1:v",
		"< cmd=put_result rc=0",
		"> cmd=barrier_in",
		"< cmd=barrier_out rc=0",
		"> cmd=get kvsname=3.0 key=a",
		"< cmd=get_result rc=0 value=1:v",
		"> cmd=get kvsname=3.0 key=b",
		"< cmd=get_result rc=1",
		"> cmd=finalize",
		"< cmd=finalize_ack rc=0",
	}
)

func TestDialogues(t *testing.T) {
	for name, d := range map[string]dialogue{"Hydra": hydra, "Slurm": slurm} {
		t.Run(name, func(t *testing.T) {
			require.NoError(t, withManager(t, d, func(c *Client) error {
				require.NoError(t, c.Put("a", "v"))
				require.NoError(t, c.Barrier(t.Context()))
				value, err := c.Get("a")
				require.NoError(t, err)
				require.Equal(t, "v", value)
				_, err = c.Get("b")
				require.ErrorIs(t, err, ErrNotFound)
				return c.Finalize()
			}))
		})
	}
}

// opening has the lines until the client is ready.
var opening = hydra[:4]

func TestManagersThatErr(t *testing.T) {
	barrier := func(c *Client) error { return c.Barrier(context.Background()) }
	get := func(c *Client) error { _, err := c.Get("a"); return err }
	put := func(c *Client) error { return c.Put("a", "v") }
	for _, test := range []struct {
		name string
		d    dialogue
		use  func(c *Client) error
		want error
		says string
	}{
		{"another version", dialogue{opening[0], "< cmd=response_to_init pmi_version=2 rc=0"}, nil, ErrRejected, `version 1 is wanted, the manager has "2"`},
		{"a rejection", dialogue{opening[0], "< cmd=response_to_init pmi_version=1 rc=-1"}, nil, ErrRejected, "version"},
		{"no key-value space", append(opening[:3:3], "< cmd=my_kvsname rc=-1"), nil, ErrProtocol, "names no key-value space"},
		{"another response", append(opening[:3:3], "< cmd=maxes kvsname_max=256"), nil, ErrProtocol, "maxes instead of my_kvsname"},
		{"an end", opening[:3], nil, ErrProtocol, "closed the connection"},
		{"words", append(opening[:3:3], "< hello there"), nil, ErrProtocol, `"hello" is not name=value`},
		{"no command", append(opening[:3:3], "< rc=0"), nil, ErrProtocol, "no command"},
		{"a field twice", append(opening[:3:3], "< cmd=my_kvsname kvsname=a kvsname=b"), nil, ErrProtocol, `"kvsname" twice`},
		{"an endless line", append(opening[:3:3], "< cmd=my_kvsname kvsname="+strings.Repeat("x", 2*maxLine)), nil, bufio.ErrTooLong, "too long"},
		{"an end in a barrier", append(opening[:4:4], "> cmd=barrier_in"), barrier, ErrProtocol, "closed the connection"},
		{"a barrier that fails", append(opening[:4:4], "> cmd=barrier_in", "< cmd=barrier_out rc=-1"), barrier, ErrRejected, "a rank has ended"},
		{"a put that fails", append(opening[:4:4], hydra[4], "< cmd=put_result rc=-1 msg=duplicate_key"), put, ErrRejected, "duplicate_key"},
		{"a stranger's value", append(opening[:4:4], hydra[8], "< cmd=get_result rc=0 value=v"), get, ErrProtocol, `"v" of "a" was not put by this package`},
		{"too many parts", append(opening[:4:4], hydra[8], "< cmd=get_result rc=0 value=1000000:v"), get, ErrProtocol, "was not put by this package"},
	} {
		t.Run(test.name, func(t *testing.T) {
			err := withManager(t, test.d, test.use)
			require.ErrorIs(t, err, test.want)
			require.ErrorContains(t, err, test.says)
		})
	}
}

// A client that has received a wrong response rejects every later call with the same error.
func TestBroken(t *testing.T) {
	d := append(opening[:4:4], "> cmd=barrier_in", "< cmd=put_result rc=0")
	_ = withManager(t, d, func(c *Client) error {
		err := c.Barrier(t.Context())
		require.ErrorIs(t, err, ErrProtocol)
		require.Equal(t, err, c.Put("a", "v"))
		return nil
	})
}

func TestCancelledBarrier(t *testing.T) {
	near, far := net.Pipe()
	defer far.Close()
	entered := make(chan struct{})
	go func() {
		_ = append(opening[:4:4], "> cmd=barrier_in").play(far)
		close(entered)
	}()
	c, err := New(near, 0, 2)
	require.NoError(t, err)
	defer c.Close()
	ctx, cancel := context.WithCancelCause(t.Context())
	enough := errors.New("enough")
	go func() {
		<-entered
		cancel(enough)
	}()
	require.ErrorIs(t, c.Barrier(ctx), enough)
	require.ErrorIs(t, c.Put("a", "v"), enough)
}

func TestArguments(t *testing.T) {
	require.NoError(t, withManager(t, opening, func(c *Client) error {
		for _, key := range []string{"", strings.Repeat("k", MaxKey+1), "a b", "a=b", "a\nb", "ä"} {
			require.ErrorIs(t, c.Put(key, "v"), ErrArgument, "key %q", key)
			_, err := c.Get(key)
			require.ErrorIs(t, err, ErrArgument, "key %q", key)
		}
		for _, value := range []string{"", "a b", "a\n", "\x00", strings.Repeat("v", MaxValue+1)} {
			require.ErrorIs(t, c.Put("key", value), ErrArgument, "a value of %d bytes", len(value))
		}
		require.ErrorContains(t, c.Put("a b", "v"), "byte 0x20 at 1")
		require.Equal(t, []any{1, 4, "kvs_17_0_3_node7"}, []any{c.Rank(), c.Size(), c.kvs})
		return nil
	}))
}

func TestEnvironment(t *testing.T) {
	for _, test := range []struct {
		fd, rank, size, port, id string
		want                     error
		says                     string
	}{
		{want: ErrNoManager},
		{fd: "x", rank: "0", size: "1", want: ErrEnvironment, says: `PMI_FD="x"`},
		{fd: "-1", rank: "0", size: "1", want: ErrEnvironment, says: `PMI_FD="-1"`},
		{fd: "9999", rank: "0", size: "1", want: ErrEnvironment, says: "PMI_FD=9999 is not a connection"},
		{fd: "0", rank: "", size: "1", want: ErrEnvironment, says: `PMI_RANK=""`},
		{fd: "0", rank: "0", size: "0", want: ErrEnvironment, says: `PMI_SIZE="0", must be a number of at least 1`},
		{fd: "0", rank: "4", size: "4", want: ErrEnvironment, says: "PMI_RANK=4, with PMI_SIZE=4 allowed are 0 to 3"},
		{port: "127.0.0.1:1", want: ErrEnvironment, says: "PMI_ID"},
		{port: "nowhere", id: "0", want: ErrEnvironment, says: "PMI_PORT=nowhere"},
	} {
		for name, value := range map[string]string{"PMI_FD": test.fd, "PMI_RANK": test.rank, "PMI_SIZE": test.size, "PMI_PORT": test.port, "PMI_ID": test.id} {
			t.Setenv(name, value)
		}
		_, err := FromEnvironment()
		require.ErrorIs(t, err, test.want)
		require.ErrorContains(t, err, test.says)
	}
}

// TestPort connects as under Hydra's -pmi-port: the manager tells the rank its number.
func TestPort(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer listener.Close()
	played := make(chan error, 1)
	go func() {
		conn, err := listener.Accept()
		if err == nil {
			err = append(dialogue{
				"> cmd=initack pmiid=2",
				"< cmd=initack", "< cmd=set size=3", "< cmd=set rank=2", "< cmd=set debug=0",
			}, append(opening[:4:4], "> cmd=finalize", "< cmd=finalize_ack")...).play(conn)
			_ = conn.Close()
		}
		played <- err
	}()
	t.Setenv("PMI_FD", "")
	t.Setenv("PMI_PORT", listener.Addr().String())
	t.Setenv("PMI_ID", "2")
	c, err := FromEnvironment()
	require.NoError(t, err)
	require.Equal(t, []int{2, 3}, []int{c.Rank(), c.Size()})
	require.NoError(t, c.Finalize())
	require.NoError(t, <-played)
}

// mostAllocated bounds what the process may allocate, besides a multiple of the bytes that the other side sends. Other
// goroutines may allocate, too.
const mostAllocated = 256 << 10

// FuzzClient plays a manager that sends arbitrary bytes. Each call of the client returns in time, with an error or a
// response.
func FuzzClient(f *testing.F) {
	f.Add([]byte("cmd=response_to_init pmi_version=1\ncmd=my_kvsname kvsname=k\ncmd=get_result value=1:v\n"))
	f.Add([]byte("cmd=response_to_init pmi_version=1\ncmd=my_kvsname kvsname=k\ncmd=get_result value=82:v\n\n"))
	f.Add([]byte(strings.Repeat("=", 5000)))
	f.Fuzz(func(t *testing.T, responses []byte) {
		near, far := net.Pipe()
		go func() {
			_, _ = far.Write(responses)
			_ = far.Close()
		}()
		go func() {
			heard := make([]byte, 1<<10)
			for {
				if _, err := far.Read(heard); err != nil {
					return
				}
			}
		}()
		require.NoError(t, near.SetDeadline(time.Now().Add(time.Minute)))
		require.LessOrEqual(t, allocs.Of(func() {
			c, err := New(near, 0, 1)
			if err != nil {
				return
			}
			if value, err := c.Get("a"); err == nil {
				require.LessOrEqual(t, len(value), len(responses))
			}
			_ = c.Barrier(t.Context())
			_ = c.Close()
		}), mostAllocated+64*len(responses))
	})
}

func FuzzMessage(f *testing.F) {
	f.Add("cmd=put_result rc=-1 msg=a b c")
	f.Add("cmd==")
	f.Fuzz(func(t *testing.T, line string) {
		allocs.AtMost(t, 2<<10+64*len(line), func() { _, _ = parse(line) })
		m, err := parse(line)
		if err != nil {
			require.ErrorIs(t, err, ErrProtocol)
			return
		}
		require.NotEmpty(t, m["cmd"])
		for name, value := range m {
			require.Contains(t, line, name+"="+value)
		}
	})
}

package registration_test

import (
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/internal/registration"
	"github.com/onesided/rma/scheduler/transfer"
	"github.com/onesided/rma/verbs"
)

var rewrite = flag.Bool("rewrite", false, "rewrite the outcomes in testdata")

// The scripts of testdata have a command a line. What it does follows, indented. Time is virtual, so that addresses, by which memory
// is cut into pieces, are the same in each run.
//
//	card PROTOCOL,… [BYTES REGIONS]  a card with these protocols, and limits of what is kept
//	buffer NAME BYTES                memory of the program
//	global NAME BYTES                the same, outside of Go's heap
//	register NAME                    by the program
//	use NAME [FROM TO]               counts a use
//	write|read NAME [FROM TO]        has a plan made and carried out: requests are outstanding until complete
//	complete                         completes all requests
//	stage BYTES [waited]             takes a buffer to copy through
//	refuse [N]                       the card refuses registrations, after N
//	break                            the card refuses registrations for another reason than a lack of memory
//	accept                           the card accepts registrations
//	tidy, counts                     deregisters what has ended; shows the counts
func TestScripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			got := play(t, string(text))
			if *rewrite {
				require.NoError(t, os.WriteFile(file, []byte(got), 0o600))
				return
			}
			require.Equal(t, string(text), got)
		})
	}
}

var global [1 << 20]byte

// A script has the state of a run.
type script struct {
	t       *testing.T
	out     strings.Builder
	device  *device
	all     *registration.Registry
	card    *registration.Card
	buffers map[string][]byte
	holds   []registration.Hold
	stages  []registration.Buffer
}

// play runs the commands of a text, and returns it with their outcome.
func play(t *testing.T, text string) string {
	s := &script{t: t, device: newDevice(t), buffers: make(map[string][]byte)}
	s.device.happened = func(event string) { s.print("%s", event) }
	for line := range strings.Lines(text) {
		command := strings.TrimSuffix(line, "\n")
		if strings.HasPrefix(command, "\t") {
			continue
		}
		s.out.WriteString(command + "\n")
		if words := strings.Fields(command); len(words) > 0 && words[0] != "#" {
			s.run(words)
		}
	}
	return s.out.String()
}

func (s *script) print(format string, some ...any) {
	s.out.WriteString("\t" + fmt.Sprintf(format, some...) + "\n")
}

// Write prints a line of the log.
func (s *script) Write(line []byte) (int, error) {
	s.print("%s", strings.TrimSuffix(string(line), "\n"))
	return len(line), nil
}

func (s *script) number(word string) int {
	n, err := strconv.Atoi(word)
	require.NoError(s.t, err)
	return n
}

// buffer is the one that words name, or a part of it.
func (s *script) buffer(words []string) []byte {
	memory := s.buffers[words[0]]
	if len(words) > 1 {
		memory = memory[s.number(words[1]):s.number(words[2])]
	}
	return memory
}

func (s *script) run(words []string) {
	switch words[0] {
	case "card":
		config := configOf(0)
		config.Virtual = true
		for name := range strings.SplitSeq(words[1], ",") {
			p, err := transfer.Parse(name)
			require.NoError(s.t, err)
			config.Protocols |= transfer.Of(p)
		}
		if len(words) > 2 {
			config.Kept.Bytes, config.Kept.Regions = uint64(s.number(words[2])), s.number(words[3])
		}
		config.Log = slog.New(slog.NewTextHandler(s, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		}}))
		s.all = over(s.device, config)
		s.card = s.all.Card(registration.Network)
	case "buffer":
		s.buffers[words[1]] = make([]byte, s.number(words[2]))
	case "global":
		s.buffers[words[1]] = global[:s.number(words[2])]
	case "register":
		_, err := s.all.Register(s.buffers[words[1]], verbs.LocalWrite)
		require.NoError(s.t, err)
	case "use":
		s.print("goes as it is: %t", s.card.Use(s.buffer(words[1:])))
	case "write", "read":
		s.move(s.buffer(words[1:]), words[0] == "write")
	case "complete":
		for i := range s.holds {
			s.holds[i].Release()
		}
		for i := range s.stages {
			s.stages[i].Release()
		}
		s.holds, s.stages = nil, nil
	case "stage":
		s.stage(s.number(words[1]), len(words) > 2)
	case "refuse":
		left := 0
		if len(words) > 1 {
			left = s.number(words[1])
		}
		s.device.refuse = func(int, verbs.Access) error {
			if left--; left < 0 {
				return fmt.Errorf("fake: no more: %w", verbs.ErrMemory)
			}
			return nil
		}
	case "break":
		s.device.refuse = func(int, verbs.Access) error { return errors.New("fake: broken") }
	case "accept":
		s.device.refuse = nil
	case "tidy":
		s.card.Tidy()
	case "counts":
		counts := s.card.Transfers()
		for p := range transfer.Protocols {
			if counts.Operations[p] > 0 {
				s.print("%v: %d operations, %d bytes", p, counts.Operations[p], counts.Bytes[p])
			}
		}
		s.print("kept: %d regions, %d bytes", counts.Kept.Regions, counts.Kept.Bytes)
	default:
		require.Fail(s.t, "no command "+words[0])
	}
}

// move has memory moved as its plan says. Requests hold what they need until complete.
func (s *script) move(memory []byte, write bool) {
	if key := s.card.Key(memory); key != 0 {
		require.NoError(s.t, s.device.use(memory, key))
		s.print("registered by the program")
		return
	}
	plan := s.card.Plan(memory, write)
	if hold, ok := plan.Whole(); ok {
		require.False(s.t, plan.More())
		require.NoError(s.t, s.device.use(memory, hold.Key()))
		s.print("kept")
		s.holds = append(s.holds, hold)
		return
	}
	protocol := plan.Protocol()
	s.print("%v", protocol)
	moved := 0
	for plan.More() {
		piece := plan.Next()
		if now := plan.Protocol(); now != protocol {
			s.print("%v", now)
			protocol = now
		}
		require.Same(s.t, &memory[moved], &piece.Memory[0])
		moved += len(piece.Memory)
		require.True(s.t, piece.AtOnce || moved == len(memory))
		atOnce := ""
		if piece.AtOnce {
			atOnce = ", at once"
		}
		if piece.Copied {
			require.False(s.t, piece.Hold.Holds())
			s.print("- copied, %d bytes%s", len(piece.Memory), atOnce)
			continue
		}
		require.NoError(s.t, s.device.use(piece.Memory, piece.Hold.Key()))
		s.print("- held, %d bytes%s, depth %d", len(piece.Memory), atOnce, plan.Depth())
		s.holds = append(s.holds, piece.Hold)
	}
	require.Equal(s.t, len(memory), moved)
}

func (s *script) stage(bytes int, waited bool) {
	b, scarce, err := s.card.CopyBuffer(bytes, waited)
	switch {
	case err != nil:
		s.print("%v", err)
	case b.Memory == nil:
		s.print("none; by a stage: %t", s.card.UsesStage(bytes))
	default:
		require.NoError(s.t, s.device.use(b.Memory, b.Key(registration.Network)))
		s.print("%d bytes, scarce: %t", len(b.Memory), scarce)
		s.stages = append(s.stages, b)
	}
}

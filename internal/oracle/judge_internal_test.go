package oracle

import (
	"encoding/binary"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// An outcome is the assumed outcome of a script with one window of int64 and one examination: the results of its steps
// in their order, and the parts of the ranks.
type outcome struct {
	name  string
	reads [][]int64
	parts [][]int64
	// says is a part of the error, or "" if the outcome is allowed.
	says string
}

// words returns elements as bytes.
func words(elements []int64) (b []byte) {
	for _, v := range elements {
		b = binary.NativeEndian.AppendUint64(b, uint64(v))
	}
	return b
}

func (o *outcome) record(p *Program) *record {
	r := &record{results: make([][][]byte, len(p.Phases)), parts: make([][][]byte, 1)}
	at := 0
	for i := range p.Phases {
		for j := range p.Phases[i].Steps {
			r.results[i] = append(r.results[i], nil)
			if p.Phases[i].Steps[j].reads() {
				r.results[i][j] = words(o.reads[at])
				at++
			}
		}
	}
	for _, part := range o.parts {
		r.parts[0] = append(r.parts[0], words(part))
	}
	return r
}

var judged = []struct {
	name, script string
	outcomes     []outcome
}{
	{"puts", `
ranks 2
window int64 counts=4,0
phase
sync w0 fence nosucceed
1 put w0 int64 on=0 at=1 n=2 fill=7
`, []outcome{
		{"both", nil, [][]int64{{0, 7, 8, 0}, {}}, ""},
		{"lost", nil, [][]int64{{0, 7, 0, 0}, {}}, "element 2 (int64) of rank 0 in window 0: its contents: got 0, allowed 8"},
		{"beyond", nil, [][]int64{{0, 7, 8, 9}, {}}, "got 9, allowed 0, because nothing writes to it"},
	}},
	{"tickets", `
ranks 3
window int64 counts=1,0,0
phase
sync w0 lockall
0 fetch w0 int64 op=sum on=0 fill=1
1 fetch w0 int64 op=sum on=0 fill=1
2 fetch w0 int64 op=sum on=0 fill=1
`, []outcome{
		{"in turn", [][]int64{{0}, {1}, {2}}, [][]int64{{3}, {}, {}}, ""},
		{"in another order", [][]int64{{2}, {0}, {1}}, [][]int64{{3}, {}, {}}, ""},
		{"one twice", [][]int64{{0}, {1}, {1}}, [][]int64{{3}, {}, {}}, "no order of the accesses gives all of them"},
		{"one beyond", [][]int64{{0}, {1}, {3}}, [][]int64{{3}, {}, {}}, `what rank 2 read by "2 fetch w0 int64 op=sum on=0 fill=1": got 3, allowed`},
		{"one lost", [][]int64{{0}, {1}, {2}}, [][]int64{{2}, {}, {}}, "its contents: got 2, allowed 3"},
	}},
	{"one swap wins", `
ranks 2
window int64 counts=1,0
phase
sync w0 lockall
0 swap w0 int64 on=0 fill=1
1 swap w0 int64 on=0 fill=2
`, []outcome{
		{"the first", [][]int64{{0}, {1}}, [][]int64{{1}, {}}, ""},
		{"the second", [][]int64{{2}, {0}}, [][]int64{{2}, {}}, ""},
		{"both", [][]int64{{0}, {0}}, [][]int64{{2}, {}}, "no order"},
		{"none", [][]int64{{2}, {1}}, [][]int64{{1}, {}}, "no order"},
	}},
	{"program order", `
ranks 2
window int64 counts=1,0
phase
sync w0 lockall
1 accumulate w0 int64 op=replace on=0 n=1 fill=5
1 accumulate w0 int64 op=sum on=0 n=1 fill=1
`, []outcome{
		{"kept", nil, [][]int64{{6}, {}}, ""},
		{"broken", nil, [][]int64{{5}, {}}, "got 5, allowed 6"},
	}},
	{"no order", `
ranks 2
window int64 counts=1,0 unordered
phase
sync w0 lockall
1 accumulate w0 int64 op=replace on=0 n=1 fill=5
1 accumulate w0 int64 op=sum on=0 n=1 fill=1
`, []outcome{
		{"one", nil, [][]int64{{6}, {}}, ""},
		{"the other", nil, [][]int64{{5}, {}}, ""},
		{"lost", nil, [][]int64{{1}, {}}, "got 1, allowed"},
	}},
	{"exclusive locks", `
ranks 3
window int64 counts=2,0,0
phase
sync w0 lock
1 lock w0 on=0 exclusive
1 get w0 int64 on=0 n=2
1 flush w0 on=0
1 put w0 int64 on=0 n=2 fill=10
1 unlock w0 on=0
2 lock w0 on=0 exclusive
2 get w0 int64 on=0 n=2
2 flush w0 on=0
2 put w0 int64 on=0 n=2 fill=20
2 unlock w0 on=0
`, []outcome{
		{"in turn", [][]int64{{0, 0}, {10, 11}}, [][]int64{{20, 21}, {}, {}}, ""},
		{"the other way", [][]int64{{20, 21}, {0, 0}}, [][]int64{{10, 11}, {}, {}}, ""},
		{"at once", [][]int64{{0, 0}, {0, 0}}, [][]int64{{20, 21}, {}, {}}, "in the order that explains most"},
		{"each element in another order", [][]int64{{0, 21}, {10, 0}}, [][]int64{{20, 11}, {}, {}}, "in the order that explains most"},
		{"torn", [][]int64{{0, 0}, {10, 11}}, [][]int64{{20, 11}, {}, {}}, "got 11, allowed 21"},
	}},
	{"loose phases", `
ranks 2
window int64 counts=1,0
phase loose
sync w0 fence
0 accumulate w0 int64 op=sum on=0 n=1 fill=3
1 accumulate w0 int64 op=sum on=0 n=1 fill=4
phase
sync w0 fence nosucceed
1 fetch w0 int64 op=replace on=0 fill=9
`, []outcome{
		{"after both", [][]int64{{7}}, [][]int64{{9}, {}}, ""},
		{"too early", [][]int64{{3}}, [][]int64{{13}, {}}, "got 3, allowed 7"},
	}},
}

// manyReplace returns a script in which each of n ranks replaces an element of rank 0.
func manyReplace(n int, mode, before, after string) string {
	text := fmt.Sprintf("ranks %d\nwindow int64 counts=1%s\nphase\nsync w0 %s\n", n, strings.Repeat(",0", n-1), mode)
	for rank := range n {
		text += strings.ReplaceAll(fmt.Sprintf("%sR accumulate w0 int64 op=replace on=0 n=1 fill=%d\n%s", before, rank+1, after), "R", fmt.Sprint(rank))
	}
	return text
}

// TestUndecided makes searches reach their bounds. The result is then ErrUndecided, unless something else is known to
// be wrong.
func TestUndecided(t *testing.T) {
	for _, script := range []string{
		manyReplace(24, "lockall", "", ""),
		manyReplace(12, "lock", "R lock w0 on=0 exclusive\n", "R unlock w0 on=0\n"),
	} {
		p, err := Parse(script)
		require.NoError(t, err)
		o := outcome{parts: make([][]int64, p.Ranks)}
		o.parts[0] = []int64{int64(p.Ranks)}
		few := bounds{places: 1000, tries: 1000}
		require.NoError(t, p.judgeWithin(o.record(p), few))
		o.parts[0] = []int64{99}
		require.ErrorIs(t, p.judgeWithin(o.record(p), few), ErrUndecided)

		// A second window is wrong, which a short search finds.
		p, err = Parse(strings.Replace(script, "phase\n", "window int64 counts=1"+strings.Repeat(",0", p.Ranks-1)+"\nphase\n", 1))
		require.NoError(t, err)
		r := o.record(p)
		r.parts[0] = append(r.parts[0], r.parts[0]...)
		var wrong *OutcomeError
		require.ErrorAs(t, p.judgeWithin(r, few), &wrong)
		require.Equal(t, 1, wrong.Window)
	}
}

// TestJudge compares outcomes with the model, which must accept exactly the allowed ones.
func TestJudge(t *testing.T) {
	for _, j := range judged {
		p, err := Parse(j.script)
		require.NoError(t, err, j.name)
		for _, o := range j.outcomes {
			err := p.judge(o.record(p))
			if o.says == "" {
				require.NoError(t, err, "%s: %s", j.name, o.name)
				continue
			}
			var wrong *OutcomeError
			require.ErrorAs(t, err, &wrong, "%s: %s", j.name, o.name)
			require.ErrorContains(t, err, o.says, "%s: %s", j.name, o.name)
		}
	}
}

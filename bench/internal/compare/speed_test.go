package compare

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/onesided/rma/bench/internal/device"
	"github.com/onesided/rma/bench/internal/plan"
	"github.com/onesided/rma/bench/internal/plan/plantest"
)

// A moody machine takes 1.4 times as long for everything from one run of a
// comparison to another.
type moody struct{ slow, fast, run int }

// library has costs on this machine, by case, when it is fast.
func (m *moody) library(name string, costs map[string]float64) Library {
	return Library{name, func(_ context.Context, j plan.Job) ([]plan.Result, error) {
		speed := 1.0
		if m.slow <= m.run && m.run < m.fast {
			speed = 1.4
		}
		m.run++
		var results []plan.Result
		for _, one := range j.Cells {
			cost := costs[one.Case.Name] * speed
			if one.Case.MoreIsBetter() {
				cost = costs[one.Case.Name] / speed
			}
			results = append(results, plan.NewResult(one, j.Ranks, []float64{cost}))
		}
		return results, nil
	}}
}

// Over TCP a round of a case has three runs: of the socket, of ours and of the peer. The next round has them backwards.
func TestRatiosAreOfOneSpeedWhereMediansAreNot(t *testing.T) {
	for _, test := range []struct {
		name               string
		slow, fast, rounds int
		// Whether the ratio to the peer, and the one to the socket, would be right
		// as well if they were of medians.
		peer, socket bool
	}{
		{"always fast", 0, 0, 3, true, true},
		{"the second round is slow", 3, 6, 3, true, true},
		{"slow from the last run of the first round to the end of the second", 2, 6, 3, false, true},
		{"slow from the second round to the first run of the third", 3, 7, 3, true, false},
		{"slow from the last run of the first of five rounds to the end of the third", 2, 9, 5, false, true},
		{"slow from the last run of the second of five rounds to the end of the fourth", 5, 12, 5, true, false},
	} {
		for _, name := range []string{"fop_lat", "put_bw:65536"} {
			t.Run(test.name+", "+name, func(t *testing.T) {
				m := &moody{slow: test.slow, fast: test.fast}
				rows, err := Run(t.Context(), device.TCP, []plan.Job{plantest.Job(t, name)}, []Library{
					m.library(Ours, map[string]float64{"fop_lat": 9, "socket_lat": 8, "put_bw": 9, "socket_bw": 8}),
					m.library("openmpi", map[string]float64{"fop_lat": 10, "put_bw": 10}),
				}, test.rounds, func(string) {})
				require.NoError(t, err)
				r, socket := rows[0], rows[0].Goals[1]
				assert.InDelta(t, 9.0/10, *r.Ratio.Median, 1e-9)
				assert.InDelta(t, 9.0/8, *socket.Value.Median, 1e-9)

				ofMedians := func(c *Column) float64 { return *r.Columns[Ours].Median / *c.Median }
				peer, beside := ofMedians(r.Columns["openmpi"]), ofMedians(socket.Of)
				assert.Equal(t, test.peer, nearly(9.0/10, peer), "medians give %v of the peer", peer)
				assert.Equal(t, test.socket, nearly(9.0/8, beside), "medians give %v of the socket", beside)
			})
		}
	}
}

func nearly(a, b float64) bool { return a-b < 1e-9 && b-a < 1e-9 }

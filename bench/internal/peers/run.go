package peers

import (
	"context"

	"github.com/onesided/rma/bench/internal/plan"
	"github.com/onesided/rma/bench/internal/program"
	"github.com/onesided/rma/bench/internal/runner"
)

// Run measures the cells of one case. With an error it returns the results before it.
func (p *Peer) Run(ctx context.Context, j plan.Job, o *runner.Options) ([]plan.Result, error) {
	name, args := p.arguments(j, o)
	output, err := program.Run(ctx, p.Command(o.Device, name, j.Ranks, args...), p.Environment(o.Device), o.Timeout, program.GracePeriod)
	results := plan.ParseResults(output, j)
	if err == nil && len(results) < len(j.Cells) {
		err = program.ErrNoResult
	}
	return results, err
}

package regression

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/onesided/rma/bench/internal/cli"
	"github.com/onesided/rma/bench/internal/gate"
	"github.com/onesided/rma/bench/internal/plan"
	"github.com/onesided/rma/bench/internal/program"
	"github.com/onesided/rma/bench/internal/table"
)

// A tree is a git work tree and an earlier commit of it.
type tree struct {
	root    string
	against string // as the command line names the commit
	commit  string
	subject string
	head    string
	changed int // files that differ from head
}

// findTree finds the work tree around dir and a commit.
func findTree(ctx context.Context, dir, against string) (*tree, error) {
	root, err := git(ctx, dir, "rev-parse", "--show-toplevel")
	if err != nil {
		return nil, fmt.Errorf("bench: gate builds an earlier commit: run it in a git work tree: %w", err)
	}
	t := &tree{root: root, against: against}
	if t.commit, err = git(ctx, root, "rev-parse", "--verify", "--quiet", "--end-of-options", against+"^{commit}"); err != nil {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return nil, cli.Usagef("-against %s: git knows no such commit", against)
	}
	if t.subject, err = git(ctx, root, "log", "-1", "--format=%h %s", t.commit); err != nil {
		return nil, err
	}
	if t.head, err = git(ctx, root, "log", "-1", "--format=%h %s"); err != nil {
		return nil, err
	}
	status, err := git(ctx, root, "status", "--porcelain")
	if err != nil {
		return nil, err
	}
	if status != "" {
		t.changed = strings.Count(status, "\n") + 1
	}
	return t, nil
}

func (t *tree) old() string {
	if strings.HasPrefix(t.subject, t.against+" ") {
		return t.subject
	}
	return fmt.Sprintf("%s (%s)", t.subject, t.against)
}

func (t *tree) new() string {
	if t.changed > 0 {
		return fmt.Sprintf("%s, with %s changed in the work tree", t.head, table.Plural(t.changed, "file"))
	}
	return t.head
}

// build builds the programs of both trees into dir.
func (t *tree) build(ctx context.Context, dir string) (*programs, error) {
	p := new(programs)
	for _, side := range []gate.Side{gate.Old, gate.Copy, gate.New} {
		p.path[side] = filepath.Join(dir, side.String())
	}
	if err := t.buildOld(ctx, filepath.Join(dir, "tree"), p.path[gate.Old]); err != nil {
		return nil, err
	}
	if err := buildBench(ctx, t.root, p.path[gate.New]); err != nil {
		return nil, err
	}
	old, err := os.ReadFile(p.path[gate.Old])
	if err != nil {
		return nil, err
	}
	later, err := os.ReadFile(p.path[gate.New])
	if err != nil {
		return nil, err
	}
	p.same = bytes.Equal(old, later)
	return p, os.WriteFile(p.path[gate.Copy], old, 0o700)
}

// buildOld builds the program of the commit in a worktree at dir, which it always removes.
func (t *tree) buildOld(ctx context.Context, dir, program string) (err error) {
	defer func() {
		// The removal must also work after an interrupt.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
		defer cancel()
		if _, removing := git(ctx, t.root, "worktree", "remove", "--force", "--force", dir); removing != nil {
			// An add that failed leaves nothing to remove.
			list, listing := git(ctx, t.root, "worktree", "list", "--porcelain")
			if listing != nil || strings.Contains(list, dir) {
				err = errors.Join(err, fmt.Errorf("bench: gate: the worktree %s is left: %w", dir, errors.Join(removing, listing)))
			}
		}
	}()
	if _, err := git(ctx, t.root, "worktree", "add", "--detach", "--quiet", dir, t.commit); err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(dir, "bench")); err != nil {
		return fmt.Errorf("bench: gate: %s is too old: it has no ./bench", t.against)
	}
	return buildBench(ctx, dir, program)
}

// buildBench builds the program of a tree. The same source gives the same program in each tree.
func buildBench(ctx context.Context, tree, program string) error {
	_, err := output(ctx, tree, "go", "build", "-trimpath", "-buildvcs=false", "-o", program, "./bench")
	return err
}

// git returns the output of git.
func git(ctx context.Context, dir string, args ...string) (string, error) {
	return output(ctx, dir, "git", args...)
}

// output returns the output of a program, without the end of the last line. The error includes its standard error.
func output(ctx context.Context, dir, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	var stdout, stderr bytes.Buffer
	cmd.Dir, cmd.Stdout, cmd.Stderr, cmd.WaitDelay = dir, &stdout, &stderr, program.GracePeriod
	program.TerminateFirst(cmd)
	err := cmd.Run()
	if ctx.Err() != nil {
		return "", context.Cause(ctx)
	}
	if err != nil {
		return "", fmt.Errorf("bench: gate: %s %s: %w\n%s", name, strings.Join(args, " "), err, bytes.TrimSpace(stderr.Bytes()))
	}
	return strings.TrimSuffix(stdout.String(), "\n"), nil
}

// programs are the programs of the sides.
type programs struct {
	path [3]string
	same bool      // the old and the new program are the same
	log  io.Writer // of each measurement; may be nil
}

// timeout bounds a measurement, in order to end a hang.
const timeout = 2 * time.Minute

// Measure measures a cell with a separate job.
func (p *programs) Measure(ctx context.Context, side gate.Side, c gate.Cell, loops int) (float64, error) {
	began := time.Now()
	value, err := p.measure(ctx, side, c, loops)
	if p.log != nil && err == nil {
		fmt.Fprintf(p.log, "bench: %v %v: %.6g %s, best of %d, in %.2f s\n", c, side, value, c.Unit, loops, time.Since(began).Seconds())
	}
	return value, err
}

func (p *programs) measure(ctx context.Context, side gate.Side, c gate.Cell, loops int) (float64, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout+program.GracePeriod)
	defer cancel()
	cmd := exec.CommandContext(ctx, p.path[side], "-device", c.Device, "-repeat", fmt.Sprint(loops), "-format", "json",
		"-timeout", timeout.String(), fmt.Sprintf("%s:%d", c.Case, c.Size))
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = &stdout, &stderr, program.GracePeriod
	program.TerminateFirst(cmd)
	if err := cmd.Run(); err != nil {
		// A panic has that status, too.
		if exit := (*exec.ExitError)(nil); errors.As(err, &exit) && exit.ExitCode() == 2 && strings.HasPrefix(stderr.String(), "bench: ") {
			return 0, fmt.Errorf("%w: %s", gate.ErrLacks, strings.TrimSpace(stderr.String()))
		}
		return 0, errors.New(program.Reason(err, stderr.String()))
	}
	var r plan.Result
	if err := json.Unmarshal(stdout.Bytes(), &r); err != nil {
		return 0, fmt.Errorf("%w: %w", program.ErrNoResult, err)
	}
	switch {
	case r.Case != c.Case || r.Size != c.Size:
		return 0, program.ErrNoResult
	case r.Skipped != "":
		return 0, errors.New(r.Skipped)
	case r.Unit != c.Unit:
		return 0, fmt.Errorf("%w: it has %s for %s", gate.ErrLacks, r.Unit, c.Unit)
	}
	return r.Value, nil
}

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// buildPatience is the time in which the go command must remove its files when it is interrupted.
const buildPatience = 5 * time.Second

// find returns the program to run: PROGRAM itself, or the file into which PACKAGE is built. remove removes that file;
// it is called when the ranks have started.
func find(ctx context.Context, name string) (program string, remove func(), err error) {
	nothing := func() {}
	info, err := os.Stat(name)
	if err == nil && !info.IsDir() {
		program, err = filepath.Abs(name)
		return program, nothing, err
	}
	if err != nil && !strings.ContainsRune(name, '/') {
		if program, err := exec.LookPath(name); err == nil {
			program, err = filepath.Abs(program)
			return program, nothing, err
		}
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return "", nil, err
	}
	if err != nil && !isPackage(ctx, name) {
		if ctx.Err() != nil {
			return "", nil, context.Cause(ctx)
		}
		return "", nil, fmt.Errorf("%s: no such program or package", name)
	}
	return build(ctx, name, info != nil)
}

// isPackage reports whether the go command knows a package by this name.
func isPackage(ctx context.Context, name string) bool {
	return goCommand(ctx, "list", "--", name).Run() == nil
}

// goCommand returns a go command that ctx interrupts. The terminal's signals do not reach it directly: after a second
// one it would leave its files.
func goCommand(ctx context.Context, arguments ...string) *exec.Cmd {
	c := exec.CommandContext(ctx, "go", arguments...)
	c.SysProcAttr = groupOfItsOwn()
	c.Cancel = func() error { return c.Process.Signal(os.Interrupt) }
	c.WaitDelay = buildPatience
	return c
}

// build builds a package into a directory of its own.
func build(ctx context.Context, name string, directory bool) (program string, remove func(), err error) {
	dir, err := os.MkdirTemp("", "rmarun-")
	if err != nil {
		return "", nil, err
	}
	remove = func() { _ = os.RemoveAll(dir) }
	// The base name of ".", for example, is that of its absolute path.
	path, err := filepath.Abs(name)
	if err != nil {
		remove()
		return "", nil, err
	}
	program = filepath.Join(dir, filepath.Base(path))
	command := goCommand(ctx, "build", "-o", program, "--", name)
	if directory {
		// The package may belong to another module than this directory.
		command = goCommand(ctx, "build", "-o", program, ".")
		command.Dir = name
	}
	if output, err := command.CombinedOutput(); err != nil {
		remove()
		if ctx.Err() != nil {
			return "", nil, fmt.Errorf("building %s: %w", name, context.Cause(ctx))
		}
		if output = bytes.TrimRight(output, "\n"); len(output) > 0 {
			err = fmt.Errorf("%w\n%s", err, output)
		}
		return "", nil, fmt.Errorf("building %s: %w", name, err)
	}
	info, err := os.Stat(program)
	if err != nil || info.IsDir() || info.Mode()&0o111 == 0 {
		remove()
		return "", nil, fmt.Errorf("%s is not a command: its package is not main", name)
	}
	return program, remove, nil
}

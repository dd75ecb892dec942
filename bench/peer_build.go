package main

import (
	"context"
	"embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

//go:embed peers/*.c
var sources embed.FS

// build compiles the programs with the peer's compiler into dir.
func (p *peer) build(ctx context.Context, dir string) error {
	files, err := sources.ReadDir("peers")
	if err != nil {
		return err
	}
	for _, file := range files {
		text, err := sources.ReadFile("peers/" + file.Name())
		if err != nil {
			return err
		}
		source := filepath.Join(dir, file.Name())
		if err := os.WriteFile(source, text, 0o600); err != nil {
			return err
		}
		if err := p.compile(ctx, dir, source); err != nil {
			return err
		}
	}
	return nil
}

// compile makes a program from a source file.
func (p *peer) compile(ctx context.Context, dir, source string) error {
	name := strings.TrimSuffix(filepath.Base(source), ".c")
	program := filepath.Join(dir, name+"."+p.name)
	output, err := exec.CommandContext(ctx, p.compiler, "-O3", "-march=native", "-o", program, source).CombinedOutput()
	if err != nil {
		return fmt.Errorf("bench: %s -o %s %s: %w\n%s", p.compiler, program, source, err, output)
	}
	p.programs[name] = program
	return nil
}

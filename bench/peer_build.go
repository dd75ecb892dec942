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
	p.programs = make(map[string]string)
	for _, file := range files {
		text, err := sources.ReadFile("peers/" + file.Name())
		if err != nil {
			return err
		}
		source := filepath.Join(dir, file.Name())
		if err := os.WriteFile(source, text, 0o600); err != nil {
			return err
		}
		name := strings.TrimSuffix(file.Name(), ".c")
		program := filepath.Join(dir, name+"."+p.name)
		output, err := exec.CommandContext(ctx, p.compiler, "-O3", "-march=native", "-o", program, source).CombinedOutput()
		if err != nil {
			return fmt.Errorf("bench: %s -o %s %s: %w\n%s", p.compiler, program, source, err, output)
		}
		p.programs[name] = program
	}
	return nil
}

package peers

import (
	"context"
	"embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

//go:embed programs/*.c
var sources embed.FS

// Build compiles the programs with the peer's compiler into dir.
func (p *Peer) Build(ctx context.Context, dir string) error {
	files, err := sources.ReadDir("programs")
	if err != nil {
		return err
	}
	for _, file := range files {
		text, err := sources.ReadFile("programs/" + file.Name())
		if err != nil {
			return err
		}
		source := filepath.Join(dir, file.Name())
		if err := os.WriteFile(source, text, 0o600); err != nil {
			return err
		}
		if err := p.Compile(ctx, dir, source); err != nil {
			return err
		}
	}
	return nil
}

// Compile makes a program from a source file.
func (p *Peer) Compile(ctx context.Context, dir, source string) error {
	name := strings.TrimSuffix(filepath.Base(source), ".c")
	program := filepath.Join(dir, name+"."+p.Name)
	output, err := exec.CommandContext(ctx, p.Compiler, "-O3", "-march=native", "-o", program, source).CombinedOutput()
	if err != nil {
		return fmt.Errorf("bench: %s -o %s %s: %w\n%s", p.Compiler, program, source, err, output)
	}
	p.Programs[name] = program
	return nil
}

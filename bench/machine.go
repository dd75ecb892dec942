package main

import (
	"fmt"
	"runtime"
	"strings"

	"github.com/onesided/rma/verbs/sim"
)

// A machine is what measurements depend on besides the programs.
type machine struct {
	CPU    string `json:"cpu"`
	Cores  int    `json:"cores"` // that this process may use
	System string `json:"system"`
	Go     string `json:"go"`
}

func thisMachine() machine {
	system := runtime.GOOS
	if release := kernelRelease(); release != "" {
		system += " " + release
	}
	return machine{
		CPU:    processorName(),
		Cores:  runtime.NumCPU(),
		System: system + " " + runtime.GOARCH,
		Go:     runtime.Version(),
	}
}

func (m machine) String() string {
	cores := "cores"
	if m.Cores == 1 {
		cores = "core"
	}
	return fmt.Sprintf("%s, %d %s, %s, %s", m.CPU, m.Cores, cores, m.System, m.Go)
}

// A simulation is what measurements in virtual time depend on, in place of a machine.
type simulation struct {
	card *sim.Profile
	seed uint64
}

func (s simulation) String() string {
	return fmt.Sprintf("%s: %s, in virtual time, seed %d", s.card.Name, s.card.Hardware, s.seed)
}

// machine is what o's measurements depend on.
func (o *options) machine() fmt.Stringer {
	if o.card != nil {
		return simulation{o.card, o.seed}
	}
	return thisMachine()
}

// commandLine is what was typed, as far as the program knows.
func commandLine(args []string) string {
	words := []string{"go", "run", "./bench"}
	for _, arg := range args {
		if arg == "" || strings.ContainsAny(arg, " \t\n'\"\\$`*?[]{}()<>|&;#!~") {
			arg = "'" + strings.ReplaceAll(arg, "'", `'\''`) + "'"
		}
		words = append(words, arg)
	}
	return strings.Join(words, " ")
}

package main

import (
	"fmt"
	"runtime"
	"strings"
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

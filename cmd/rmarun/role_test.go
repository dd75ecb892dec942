package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/onesided/rma/world/pmi"
)

// play is what a rank does. A role is words: what rank 1 does, or all do.
func play(role, rank string) {
	switch name, argument, _ := strings.Cut(role, " "); name {
	case "exit":
		if rank == "1" {
			fmt.Println("about to end")
			status, _ := strconv.Atoi(argument)
			os.Exit(status)
		}
		if argument != "0" {
			wait()
		}
	case "signal":
		if rank == "1" {
			number, _ := strconv.Atoi(argument)
			_ = syscall.Kill(os.Getpid(), syscall.Signal(number))
		}
		wait()
	case "stubborn":
		signal.Ignore(syscall.SIGTERM)
		if rank == "1" {
			os.Exit(4)
		}
		time.Sleep(time.Hour)
	case "bury":
		ended := termination()
		meet()
		if rank == "1" {
			fmt.Println("about to end")
			os.Exit(3)
		}
		<-ended
		if lines, _ := strconv.Atoi(argument); rank == "0" {
			fmt.Print(strings.Repeat("ended by another\n", lines))
		}
	case "linger":
		// Rank 0 fails because of rank 1, of which a child keeps the output open.
		linger(argument, rank == "1")
	case "abort":
		client := manager()
		for range 100 {
			status, _ := strconv.Atoi(argument)
			_ = client.Abort(status)
		}
		os.Exit(9)
	case "lines":
		for i := range 100 {
			fmt.Printf("line %d of rank %s: %s\n", i, rank, strings.Repeat(rank, 200))
			fmt.Fprintf(os.Stderr, "error %d of rank %s\n", i, rank)
		}
		fmt.Printf("last of rank %s", rank)
	case "input":
		text, _ := io.ReadAll(os.Stdin)
		fmt.Printf("rank %s read %q\n", rank, text)
	case "environment":
		fmt.Printf("%s %s %s %s\n", rank, os.Getenv("PMI_SIZE"), os.Getenv("FIRST"), os.Getenv("SECOND"))
	case "files":
		entries, _ := os.ReadDir("/proc/self/fd")
		for _, e := range entries {
			link, err := os.Readlink("/proc/self/fd/" + e.Name())
			if err == nil && (strings.HasPrefix(link, "pipe:") || strings.HasPrefix(link, "socket:")) {
				fmt.Println(e.Name(), link)
			}
		}
	case "arguments":
		fmt.Println(strings.Join(os.Args[1:], "|"))
	case "await":
		heard := make(chan os.Signal, 4)
		signal.Notify(heard, syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGINT, syscall.SIGTERM)
		fmt.Println("ready", os.Getpid())
		for s := range heard {
			fmt.Println("heard", s)
			switch s {
			case syscall.SIGUSR1, syscall.SIGTERM:
				return
			case syscall.SIGUSR2:
				os.Exit(5)
			}
		}
	case "leave":
		// A child keeps the output open after the rank has ended.
		child := exec.Command("sleep", "600")
		child.Stdout = os.Stdout
		_ = child.Start()
		fmt.Println("child", child.Process.Pid)
	}
}

// termination tells when this process is to end.
func termination() <-chan os.Signal {
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM)
	return stop
}

// wait waits to be ended.
func wait() { <-termination() }

// manager connects to what rmarun serves.
func manager() *pmi.Client {
	client, err := pmi.FromEnvironment()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(125)
	}
	return client
}

// meet returns when all ranks have called it.
func meet() {
	client := manager()
	if err := errors.Join(client.Barrier(context.Background()), client.Finalize()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(125)
	}
}

// linger leaves a child that has this rank's output, and fails. The other rank reads from
// a FIFO which of them that is, and fails when rmarun knows of it.
func linger(fifo string, first bool) {
	if first {
		child := exec.Command("sleep", "600")
		child.Stdout = os.Stdout
		_ = child.Start()
		_ = os.WriteFile(fifo, []byte(strconv.Itoa(os.Getpid())), 0)
		os.Exit(3)
	}
	text, _ := os.ReadFile(fifo)
	pid, _ := strconv.Atoi(string(text))
	for syscall.Kill(pid, 0) == nil {
		time.Sleep(time.Millisecond)
	}
	os.Exit(4)
}

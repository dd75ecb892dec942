package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"

	"github.com/onesided/rma/internal/await"
	"github.com/onesided/rma/internal/bootstrap/pmi"
	"github.com/onesided/rma/internal/tty"
	"github.com/onesided/rma/world"
)

// flood is the number of bytes that the role of this name writes, besides a line. The two pipes together have room for
// 128 KiB.
const flood = 120 << 10

// roles has the roles of ranks by name. The argument is the text after the name.
var roles = map[string]func(rank, argument string){
	// exit makes rank 1 end with a status. If that is a failure, the other ranks wait.
	"exit": func(rank, argument string) {
		status, _ := strconv.Atoi(argument)
		if rank == "1" {
			fmt.Println("about to end")
			os.Exit(status)
		}
		if status != 0 {
			wait()
		}
	},
	// signal makes a signal end rank 1.
	"signal": func(rank, argument string) {
		if rank == "1" {
			number, _ := strconv.Atoi(argument)
			_ = syscall.Kill(os.Getpid(), syscall.Signal(number))
		}
		wait()
	},
	// stubborn makes rank 1 fail. The other ranks ignore SIGTERM.
	"stubborn": func(rank, _ string) {
		signal.Ignore(syscall.SIGTERM)
		if rank == "1" {
			os.Exit(4)
		}
		await.Killed()
	},
	// unclosed makes rank 1 end with a status after it has joined, or report that it could not join, or close its
	// connection and continue. Rank 0 then waits. Or all ranks end.
	"unclosed": func(rank, how string) {
		client := manager()
		if how == "all" {
			os.Exit(0)
		}
		if rank != "1" {
			_ = client.Finalize()
			wait()
			return
		}
		status, err := strconv.Atoi(how)
		if how == "not joined" {
			err = client.NotJoined(1)
		}
		if err == nil {
			os.Exit(status)
		}
		_ = client.Close()
		wait()
	},
	// abandon makes each rank abort the job with a status and then end with 0.
	"abandon": func(_, argument string) {
		status, _ := strconv.Atoi(argument)
		_ = manager().Abort(status)
		os.Exit(0)
	},
	// abandoned makes rank 1 abort the job with a status. All ranks wait to be ended.
	"abandoned": func(rank, argument string) {
		ended := termination()
		client := manager()
		if err := client.Barrier(context.Background()); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(125)
		}
		if status, _ := strconv.Atoi(argument); rank == "1" {
			_ = client.Abort(status)
		}
		<-ended
	},
	// recover makes ranks 0 and 1 fail. Rank 0 has blamed rank 1, and may have taken the blame back. Rank 2 succeeds.
	"recover": func(rank, how string) {
		if rank == "2" {
			return
		}
		if rank == "0" {
			client := manager()
			_ = client.Blame(2, true)
			_ = client.Blame(1, false)
			switch how {
			case "recovers":
				_ = client.Blame(pmi.NoRank, false)
			case "blames again":
				_ = client.Blame(pmi.NoRank, false)
				_ = client.Blame(1, false)
			case "begins again":
				_ = client.Finalize()
				manager()
			}
		}
		os.Exit(7)
	},
	// bury makes rank 1 fail. Rank 0 prints a number of lines when rmarun ends it for that.
	"bury": func(rank, argument string) {
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
	},
	// follow makes rank 1 blame rank 0, rank 2 blame rank 1, and both fail. Rank 0 notices that by the end of a FIFO
	// that they have open, prints the reason, and fails by itself. Rank 1 may blame it for having left, and rank 0 may
	// blame rank 2.
	"follow": func(rank, argument string) {
		how, fifo, _ := strings.Cut(argument, " ")
		client := manager()
		mode := os.O_WRONLY
		if rank == "0" {
			mode = os.O_RDONLY
		}
		open, err := os.OpenFile(fifo, mode, 0)
		if err = errors.Join(err, client.Barrier(context.Background())); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(125)
		}
		if number, _ := strconv.Atoi(rank); number > 0 {
			_ = client.Blame(number-1, number == 1 && how == "left")
			os.Exit(4)
		}
		_, _ = io.ReadAll(open)
		switch how {
		case "left", "blames":
			_ = client.Blame(2, false)
		}
		fmt.Println("the reason")
		os.Exit(3)
	},
	// decline makes the Init of rank 1 fail. Each rank fails with a status of its own.
	"decline": func(rank, _ string) {
		device, status := "", 4
		if rank == "1" {
			device, status = "nonsense", 7
		}
		if _, err := world.Init(context.Background(), world.WithDevice(device)); err != nil {
			os.Exit(status)
		}
	},
	// linger makes rank 1 fail and leave a child that has its output. Rank 0 reads the number of the child from a FIFO.
	// When rmarun ends rank 0 because of the failure, rank 0 kills the child and fails, too.
	"linger": func(rank, fifo string) {
		ended := termination()
		if rank == "1" {
			_ = os.WriteFile(fifo, []byte(strconv.Itoa(leave())), 0)
			os.Exit(3)
		}
		text, _ := os.ReadFile(fifo)
		pid, _ := strconv.Atoi(string(text))
		<-ended
		_ = syscall.Kill(pid, syscall.SIGKILL)
		os.Exit(4)
	},
	// abort makes all ranks abort the job again and again.
	"abort": func(_, argument string) {
		status, _ := strconv.Atoi(argument)
		client := manager()
		for range 100 {
			_ = client.Abort(status)
		}
		os.Exit(9)
	},
	"lines": func(rank, _ string) {
		for i := range 100 {
			fmt.Printf("line %d of rank %s: %s\n", i, rank, strings.Repeat(rank, 200))
			fmt.Fprintf(os.Stderr, "error %d of rank %s\n", i, rank)
		}
		fmt.Printf("last of rank %s", rank)
	},
	"input": func(rank, _ string) {
		text, _ := io.ReadAll(os.Stdin)
		fmt.Printf("rank %s read %q\n", rank, text)
	},
	"environment": func(rank, _ string) {
		fmt.Printf("%s %s %s %s\n", rank, os.Getenv("PMI_SIZE"), os.Getenv("FIRST"), os.Getenv("SECOND"))
	},
	"processors": func(string, string) { fmt.Println(runtime.GOMAXPROCS(0)) },
	// files prints the pipes and sockets that the rank has.
	"files": func(string, string) {
		entries, _ := os.ReadDir("/proc/self/fd")
		for _, e := range entries {
			link, err := os.Readlink("/proc/self/fd/" + e.Name())
			if err == nil && (strings.HasPrefix(link, "pipe:") || strings.HasPrefix(link, "socket:")) {
				fmt.Println(e.Name(), link)
			}
		}
	},
	"arguments": func(string, string) { fmt.Println(strings.Join(os.Args[1:], "|")) },
	// await prints signals until one arrives that ends the rank.
	"await": func(string, string) {
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
	},
	// reader makes rank 0 read a line, and end if there is none. All ranks print interrupts until SIGUSR1 arrives.
	// SIGUSR2 makes them fail.
	"reader": func(rank, _ string) {
		heard := make(chan os.Signal, 4)
		signal.Notify(heard, syscall.SIGINT, syscall.SIGUSR1, syscall.SIGUSR2)
		fmt.Println("ready", os.Getpid())
		if rank == "0" {
			go func() {
				var line []byte
				for b := make([]byte, 1); b[0] != '\n'; line = append(line, b...) {
					if _, err := os.Stdin.Read(b); err != nil {
						break
					}
				}
				fmt.Printf("rank 0 read %q\n", line)
				if len(line) == 0 {
					os.Exit(0)
				}
			}()
		}
		for s := <-heard; s != syscall.SIGUSR1; s = <-heard {
			if s == syscall.SIGUSR2 {
				os.Exit(3)
			}
			fmt.Printf("rank %s heard %v\n", rank, s)
		}
	},
	// flood writes more bytes than the pipe of rmarun's output has room for, and fewer than that pipe and the rank's
	// own pipe have together. It may leave a process that could write more.
	"flood": func(_, left string) {
		if left != "" {
			leave()
		}
		fmt.Println("ready", os.Getpid())
		fmt.Print(strings.Repeat(".", flood))
	},
	// deaf ignores the signals that end a job.
	"deaf": func(string, string) {
		signal.Ignore(ending...)
		fmt.Println("ready", os.Getpid())
		await.Killed()
	},
	// prompt prints a prompt without a line end.
	"prompt": func(string, string) {
		ended := termination()
		fmt.Print("name? ")
		<-ended
	},
	// seen writes to both streams in turns. It writes to standard error only if that appears on a terminal at once.
	"seen": func(string, string) {
		for i := range 2 {
			if tty.Shows(os.Stderr) {
				fmt.Fprintln(os.Stderr, "seen", i+1)
			}
			fmt.Println("result", i+1)
		}
	},
	// orphan leaves a process without a parent, which then ends.
	"orphan": func(string, string) {
		ended := termination()
		c := exec.Command("sh", "-c", "true & echo ready $!")
		c.Stdout = os.Stdout
		_ = c.Run()
		<-ended
	},
	// escape leaves a process in a session of its own, and ends when SIGUSR1 arrives.
	"escape": func(string, string) {
		heard := make(chan os.Signal, 1)
		signal.Notify(heard, syscall.SIGUSR1)
		child := exec.Command("sleep", "600")
		child.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		_ = child.Start()
		fmt.Println("ready", child.Process.Pid)
		<-heard
	},
	// build stands for a go command. It reports its start in a FIFO, and runs until it is interrupted.
	"build": func(_, fifo string) {
		heard := make(chan os.Signal, 1)
		signal.Notify(heard, os.Interrupt)
		if err := os.WriteFile(fifo, nil, 0); err != nil {
			os.Exit(125)
		}
		<-heard
		os.Exit(1)
	},
	// leave writes the number of the process that it leaves behind to a file in a directory. The file has the name of
	// the rank.
	"leave": func(rank, dir string) {
		if err := os.WriteFile(filepath.Join(dir, rank), []byte(strconv.Itoa(leave())), 0o600); err != nil {
			os.Exit(125)
		}
	},
}

// leave starts a child that keeps the output open after the rank has ended.
func leave() (pid int) {
	child := exec.Command("sleep", "600")
	child.Stdout = os.Stdout
	_ = child.Start()
	return child.Process.Pid
}

// play plays a role: a name and an argument.
func play(role, rank string) {
	name, argument, _ := strings.Cut(role, " ")
	f, ok := roles[name]
	if !ok {
		fmt.Fprintf(os.Stderr, "unknown role %q\n", role)
		os.Exit(125)
	}
	f(rank, argument)
}

// termination returns a channel that receives SIGTERM.
func termination() <-chan os.Signal {
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM)
	return stop
}

// wait returns when SIGTERM arrives.
func wait() { <-termination() }

// manager connects to the PMI server of rmarun.
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

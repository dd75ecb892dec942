package main

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/onesided/rma/internal/loopback"
)

// redisPrograms must be installed where rank 0 is.
var redisPrograms = []string{"redis-server", "redis-benchmark"}

// pipelines returns the pipeline depths for Redis: the usual ones, and the size of a batch of the table.
func pipelines(batch int) []int {
	if batch <= 64 {
		return []int{16, 64}
	}
	return []int{16, 64, batch}
}

// redisRates are in requests a second.
type redisRates struct {
	get, set float64
	pipeline int
}

// mixed returns the rate of operations of a workload, if each request costs what it costs alone.
func (r redisRates) mixed(w workload) float64 {
	cost := 1 / r.set
	if w.other == modify {
		cost += 1 / r.get
	}
	return 1 / (w.reads/r.get + (1-w.reads)*cost)
}

// measureRedis runs a redis-server, and redis-benchmark on it.
func measureRedis(ctx context.Context, o options, clients int, loopback bool) (best redisRates, err error) {
	directory, err := os.MkdirTemp("", "ycsb")
	if err != nil {
		return best, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(directory)) }()
	network, address := "unix", filepath.Join(directory, "socket")
	where := []string{"-s", address}
	listen := []string{"--port", "0", "--unixsocket", address}
	if loopback {
		if network, address, err = freePort(); err != nil {
			return best, err
		}
		host, port, err := net.SplitHostPort(address)
		if err != nil {
			return best, err
		}
		where = []string{"-h", host, "-p", port}
		listen = []string{"--bind", host, "--port", port}
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	server := exec.CommandContext(ctx, "redis-server", append(listen, "--save", "", "--appendonly", "no", "--dir", directory)...)
	server.Cancel = func() error { return server.Process.Signal(syscall.SIGTERM) }
	server.WaitDelay = 10 * time.Second
	if err := server.Start(); err != nil {
		return best, fmt.Errorf("redis-server: %w", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Wait(); stop() }()
	// The end of its context stops the server.
	defer func() { stop(); <-ended }()
	if err := dialable(ctx, network, address); err != nil {
		return best, fmt.Errorf("redis-server does not answer: %w", err)
	}
	for _, pipeline := range pipelines(o.batch) {
		rates, err := benchmarkRedis(ctx, o, where, clients, pipeline)
		if err != nil {
			return best, err
		}
		if best.pipeline == 0 || rates.mixed(o.workload) > best.mixed(o.workload) {
			best = rates
		}
	}
	return best, nil
}

// benchmarkRedis sets records, and then gets them.
func benchmarkRedis(ctx context.Context, o options, where []string, clients, pipeline int) (redisRates, error) {
	arguments := append(where, "-t", "set,get", "--csv", "-c", strconv.Itoa(clients), "-P", strconv.Itoa(pipeline),
		"-d", strconv.Itoa(o.value), "-r", strconv.Itoa(o.records), "-n", strconv.Itoa(max(min(o.operations, 2_000_000), pipeline)))
	out, err := exec.CommandContext(ctx, "redis-benchmark", arguments...).Output()
	if err != nil {
		return redisRates{}, fmt.Errorf("redis-benchmark: %w", err)
	}
	rates, err := parseRates(string(out))
	rates.pipeline = pipeline
	return rates, err
}

// parseRates reads the output of redis-benchmark.
func parseRates(text string) (r redisRates, err error) {
	lines := csv.NewReader(strings.NewReader(text))
	lines.FieldsPerRecord = -1
	rows, err := lines.ReadAll()
	if err != nil {
		return r, fmt.Errorf("redis-benchmark: %w", err)
	}
	for _, row := range rows {
		if len(row) < 2 {
			continue
		}
		rate, err := strconv.ParseFloat(row[1], 64)
		if err != nil {
			continue
		}
		switch row[0] {
		case "GET":
			r.get = rate
		case "SET":
			r.set = rate
		}
	}
	if r.get <= 0 || r.set <= 0 {
		return r, fmt.Errorf("redis-benchmark: no rates in %q", text)
	}
	return r, nil
}

// freePort returns an unused loopback address.
func freePort() (network, address string, err error) {
	at, err := loopback.HostPort()
	if err != nil {
		return "", "", err
	}
	listener, err := net.Listen("tcp", at)
	if err != nil {
		return "", "", err
	}
	defer listener.Close()
	return "tcp", listener.Addr().String(), nil
}

// dialable waits until a server listens.
func dialable(ctx context.Context, network, address string) error {
	ctx, stop := context.WithTimeout(ctx, 20*time.Second)
	defer stop()
	for {
		connection, err := new(net.Dialer).DialContext(ctx, network, address)
		if err == nil {
			return connection.Close()
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(10 * time.Millisecond):
		}
	}
}

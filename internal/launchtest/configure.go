package launchtest

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"text/template"
)

// processors is the number of processors that each node claims, whatever the machine has: the number of ranks that it
// can take.
const processors = 64

// slurmConf configures a Slurm without control groups, accounting and systemd that listens on the loopback address
// only.
var slurmConf = template.Must(template.New("slurm.conf").Parse(`ClusterName=launchtest
SlurmctldHost={{.Host}}(127.0.0.1)
SlurmctldPort={{.Port}}
CommunicationParameters=NoCtldInAddrAny,NoInAddrAny
SlurmUser={{.User}}
SlurmdUser={{.User}}
{{if .Munge -}}
AuthType=auth/munge
AuthInfo=socket={{.Munge}}
CredType=cred/munge
{{else -}}
AuthType=auth/none
CredType=cred/none
{{end -}}
StateSaveLocation={{.Dir}}/state
SlurmdSpoolDir={{.Dir}}/spool.%n
SlurmctldPidFile={{.Dir}}/slurmctld.pid
SlurmdPidFile={{.Dir}}/%n.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerType=sched/builtin
SlurmdParameters=config_overrides
ReturnToService=2
KillWait=2
MpiDefault=none
MailProg=/bin/true
{{range .Nodes}}NodeName={{.Name}} NodeHostname={{$.Host}} NodeAddr=127.0.0.1 Port={{.Port}} CPUs={{$.Processors}} State=UNKNOWN
{{end}}PartitionName=all Nodes=ALL Default=YES OverSubscribe=YES MaxTime=INFINITE State=UP
`))

type node struct {
	Name string
	Port int
}

func nodeName(n int) string { return fmt.Sprintf("n%d", n+1) }

func confPath(dir string) string { return filepath.Join(dir, "slurm.conf") }

// configure writes the configuration and makes the directories that it names. Slurm authenticates its clients by
// munge, if there is a munge socket. Otherwise it believes every client.
func configure(dir, munge string, port int, nodePorts []int) (path string, err error) {
	host, err := os.Hostname()
	if err != nil {
		return "", fmt.Errorf("launchtest: %w", err)
	}
	// The controller compares the short name with its own.
	host, _, _ = strings.Cut(host, ".")
	user := slurmUser()
	if user == 0 {
		user = os.Geteuid()
	}
	dirs := []string{"state"}
	var nodes []node
	for n, p := range nodePorts {
		nodes = append(nodes, node{nodeName(n), p})
		dirs = append(dirs, "spool."+nodeName(n))
	}
	for _, name := range dirs {
		path := filepath.Join(dir, name)
		if err := os.Mkdir(path, 0o755); err != nil {
			return "", fmt.Errorf("launchtest: %w", err)
		}
		if err := os.Chown(path, user, -1); err != nil {
			return "", fmt.Errorf("launchtest: %w", err)
		}
	}
	var text bytes.Buffer
	if err := slurmConf.Execute(&text, map[string]any{
		"Host": host, "Port": port, "User": user, "Dir": dir, "Processors": processors, "Nodes": nodes, "Munge": munge,
	}); err != nil {
		return "", fmt.Errorf("launchtest: %w", err)
	}
	if err := os.WriteFile(confPath(dir), text.Bytes(), 0o644); err != nil {
		return "", fmt.Errorf("launchtest: %w", err)
	}
	return confPath(dir), nil
}

// freePorts returns unused ports of the loopback address.
func freePorts(n int) (ports []int, err error) {
	for range n {
		l, err := net.Listen("tcp4", "127.0.0.1:0")
		if err != nil {
			return nil, fmt.Errorf("launchtest: finding a free port: %w", err)
		}
		// They are closed together, so that no port is found twice.
		defer l.Close()
		ports = append(ports, l.Addr().(*net.TCPAddr).Port)
	}
	return ports, nil
}

package paper

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// docs/figures.md and docs/papers.md count what figures/figures.txt has, which is what bench paper prints. docs/figures.md has the
// papers' part of it.
func TestRecordsOfTheFiguresAgree(t *testing.T) {
	read := func(name string) string {
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		return string(text)
	}
	printed, record, papers := read("../../figures/figures.txt"), read("../../../docs/figures.md"), read("../../../docs/papers.md")
	type count struct{ cases, agree, exceed, off int }
	var total count
	counts := make(map[string]count)
	for line := range strings.Lines(printed) {
		fields := strings.Fields(line)
		if len(fields) < 7 || !slices.Contains(parts(), fields[0]) {
			continue
		}
		if fields[0] != "trace" {
			assert.Contains(t, record, "\n"+line)
		}
		c := count{cases: 1}
		switch {
		case slices.Contains(fields, "off"):
			c.off = 1
		case strings.HasPrefix(fields[len(fields)-1], "["):
			c.exceed = 1
		case slices.Contains(fields, "within"):
			c.agree = 1
		default:
			continue
		}
		add := func(to count) count {
			return count{to.cases + c.cases, to.agree + c.agree, to.exceed + c.exceed, to.off + c.off}
		}
		total, counts[fields[0]] = add(total), add(counts[fields[0]])
	}
	counted := fmt.Sprintf("Of %d cases, %d of them traces of no paper, %d agree, %d exceed the paper's value by more than a fifth for a reason given below the table, and %d are off.",
		total.cases, counts["trace"].cases, total.agree, total.exceed, total.off)
	assert.Contains(t, strings.Join(strings.Fields(record), " "), counted)
	for part, c := range counts {
		name := part
		if part == "trace" {
			name = "traces, of no paper"
		}
		row := fmt.Sprintf("| %s | %d | %d | %d | %d |", name, c.cases, c.agree, c.exceed, c.off)
		assert.True(t, strings.Contains(papers, "\n"+row+"\n"), "docs/papers.md has no row %s", row)
	}
}

// docs/figures.md has what .ci/figures prints, rounded: figures/virtual.txt and figures/thousands.txt; and of traces what
// figures/figures.txt has.
func TestRecordOfVirtualTime(t *testing.T) {
	text, err := os.ReadFile("../../../docs/figures.md")
	require.NoError(t, err)
	record := string(text)
	// measured has the value of each case and size by the command.
	measured, command := make(map[string]map[string]string), ""
	var output []string
	for _, name := range []string{"virtual", "thousands", "figures"} {
		text, err := os.ReadFile("../../figures/" + name + ".txt")
		require.NoError(t, err)
		for line := range strings.Lines(string(text)) {
			fields := strings.Fields(line)
			switch {
			case strings.HasPrefix(line, "$ go run ./bench "):
				command = strings.TrimSpace(strings.TrimPrefix(line, "$ go run ./bench "))
				measured[command] = make(map[string]string)
			case name == "figures" && len(fields) > 0 && fields[0] == "trace":
				command = "trace " + fields[1]
				if measured[command] == nil {
					measured[command] = make(map[string]string)
				}
				measured[command][fields[2]] = fields[len(fields)-3]
			case name != "figures" && fields[1] == "time":
				if command == "scale" {
					assert.Contains(t, strings.Join(strings.Fields(record), " "), strings.Join(fields, " "))
				}
			case name != "figures" && strings.HasPrefix(command, "scale"):
				measured[command][fields[0]+":"+fields[1]] = strings.Join([]string{fields[2], fields[4], fields[6]}, " ")
			case name == "virtual":
				measured[command][fields[0]+":"+fields[1]] = fields[2]
				if strings.Contains(command, "cardatomics") {
					output = append(output, line)
				}
			}
		}
	}
	assert.Contains(t, record, strings.Join(output, ""))

	// row is a line of the record, of the first table behind a heading that has one which begins so.
	row := func(heading, begins string) []string {
		_, behind, found := strings.Cut(record, "\n"+heading+"\n")
		require.True(t, found, heading)
		_, behind, found = strings.Cut(behind, "\n"+begins)
		require.True(t, found, "%s has no line that begins with %q", heading, begins)
		line, _, _ := strings.Cut(behind, "\n")
		return strings.FieldsFunc(line, func(r rune) bool { return strings.ContainsRune(" |%", r) })
	}
	// agree compares what is recorded, to its last digit, with values of cases of commands.
	agree := func(recorded []string, commands, cases []string) {
		var values []string
		for _, command := range commands {
			for _, name := range cases {
				require.Contains(t, measured[command], name, command)
				value, err := strconv.ParseFloat(measured[command][name], 64)
				require.NoError(t, err)
				if strings.HasPrefix(name, "put_bw") {
					value /= 1000
				}
				_, digits, _ := strings.Cut(recorded[min(len(values), len(recorded)-1)], ".")
				values = append(values, strconv.FormatFloat(value, 'f', len(digits), 64))
			}
		}
		assert.Equal(t, values, recorded, commands)
	}
	const cards, off = "## RDMA cards", "### On and off"
	sizes := []string{"put_flush_lat:2048", "put_flush_lat:8192", "put_flush_lat:65536", "get_flush_lat:8192", "get_flush_lat:65536"}
	const moves = " put_flush_lat:2048,8192,65536 get_flush_lat:8192,65536"
	for way, begins := range map[string]string{"copy": "", "copy-pipeline": "", "superpipeline": "", "register": "", "auto": ", these buffers being used again"} {
		agree(row(cards, "| `transfer="+way+"`"+begins+" |"), []string{"-device sim:graphene-ddr -set registered=off -set transfer=" + way + moves}, sizes)
	}
	agree(row(cards, "| `registered=on` |"), []string{"-device sim:graphene-ddr -set registered=on" + moves}, sizes)

	const long = "-device sim:graphene-ddr acc_flush_lat:65536,1048576 put_flush_lat:65536,1048576"
	agree(row(off, "| put, for comparison |"), []string{long}, []string{"put_flush_lat:65536", "put_flush_lat:1048576"})
	agree(row(off, "| accumulate |"), []string{long}, []string{"acc_flush_lat:65536", "acc_flush_lat:1048576"})
	agree(row(off, "| accumulate, blocks of one length |"), []string{"-device sim:graphene-ddr -set transfer=copy acc_flush_lat:65536,1048576"}, []string{"acc_flush_lat:65536", "acc_flush_lat:1048576"})
	for rings, said := range map[string]string{"off": "send and receive", "on": "rings"} {
		var commands []string
		for _, card := range []string{"infinihost-2003", "connectx-ddr-2009", "ndr-2024"} {
			commands = append(commands, "-device sim:"+card+" -set rings="+rings+" fop_lat fence_put_lat:8")
		}
		agree(row(off, "| fetch-and-op, "+said+" |"), commands, []string{"fop_lat:8"})
		agree(row(off, "| put and fence, "+said+" |"), commands, []string{"fence_put_lat:8"})
	}
	for name, cases := range measured {
		if trace, ok := strings.CutPrefix(name, "trace "); ok {
			want := []string{cases["time_copy"], cases["time_superpipeline"], cases["time_register"], cases["time_cache"], cases["time_auto"], cases["auto_of_best"]}
			got := row("### Buffers that are used again", "| "+trace+" |")
			for i := range got {
				got[i] = strings.TrimSuffix(got[i], ".0")
				want[i] = strings.TrimSuffix(want[i], ".0")
			}
			assert.Equal(t, want, got, name)
		}
	}
	for name, values := range measured["scale"] {
		workload, ranks, _ := strings.Cut(name, ":")
		fields := strings.Fields(values)
		assert.Regexp(t, "(?m)^"+workload+" +"+ranks+" +"+strings.Join(fields, " +")+" ", record)
		if few, ok := measured["scale -ranks 4,16,64"][name]; ok {
			assert.Equal(t, few, values, name)
		}
	}
	prose := strings.Join(strings.Fields(record), " ")
	take := regexp.MustCompile(`inline=off put_flush_lat:8. takes (\S+) us where it takes (\S+) with it`).FindStringSubmatch(prose)
	require.NotNil(t, take)
	agree(take[1:], []string{"-device sim:ndr-2024 -set inline=off put_flush_lat:8", "-device sim:ndr-2024 -set inline=on put_flush_lat:8"}, []string{"put_flush_lat:8"})
	rails := []string{"-device sim:ndr-2024 -rails 2 -set striping=on put_flush_lat:8,1048576 put_bw:65536", "-device sim:ndr-2024 -rails 2 -set striping=off put_flush_lat:8,1048576 put_bw:65536"}
	take = regexp.MustCompile(`a put of 1 MiB and its flush take (\S+) instead of (\S+) us, puts of 64 KiB come to (\S+) instead of (\S+) GB/s`).FindStringSubmatch(prose)
	require.NotNil(t, take)
	agree(take[1:3], rails, []string{"put_flush_lat:1048576"})
	agree(take[3:], rails, []string{"put_bw:65536"})
}

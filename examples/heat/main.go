// Command heat computes how heat spreads on a plate that is distributed over the ranks, and draws it.
//
//	go run ./cmd/rmarun -n 4 ./examples/heat -o heat.png
//	go run ./cmd/rmarun -n 4 ./examples/heat -start sine
//
// The edges of the plate stay cold. In each step an element moves toward the mean of its four neighbors, by the
// explicit scheme of finite differences. Between steps the ranks exchange edges with their neighbors. A plate that
// begins as one wave of a sine in each direction keeps that shape, and fades by a known factor in each step: -start
// sine verifies that. With -start spots, the default, the total heat may only decrease, and no element may exceed the
// initial maximum.
package main

import (
	"context"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"io/fs"
	"math"
	"os"

	"github.com/onesided/rma/examples/grid"
	"github.com/onesided/rma/examples/internal/kernel"
	"github.com/onesided/rma/window"
	"github.com/onesided/rma/world"
)

func main() { kernel.Main(newKernel()) }

// job holds the flags.
type job struct {
	size, steps int
	pattern     int
	file        string
	by          grid.Sync
}

// The initial patterns of the plate.
const (
	spots = iota
	sine
)

func newKernel() *kernel.Kernel {
	j := &job{size: 500, steps: 1000, by: grid.PSCW}
	return &kernel.Kernel{
		Name: "heat", About: "Lets heat spread on a plate that is distributed over the ranks",
		More: `The results are the rate, in 10^6 elements a second, and the heat that is left of all that there was, in percent.`,
		Flags: func(f *kernel.Flags) {
			f.Number(&j.size, "n", 3, 1<<15, "the plate has `n` lines and columns between its edges")
			f.Number(&j.steps, "steps", 1, 1<<30, "make `n` steps")
			f.Choice("start", "the `kind` of heat at the beginning", []string{"spots", "sine"}, &j.pattern)
			f.StringVar(&j.file, "o", "", "draw the plate at the end in a PNG `file`")
			grid.Flag(f.FlagSet, &j.by)
		},
		Check: func(ranks int) error { return grid.Check(ranks, j.size, j.size, 1) },
		Run:   j.run,
	}
}

// spread is the share of the difference to its neighbors by which an element changes in a step. The scheme is stable
// until a quarter.
const spread = 0.2

func (j *job) run(ctx context.Context, r *kernel.Rank) (err error) {
	to, err := j.create(ctx, r)
	if to != nil {
		defer func() { err = errors.Join(err, to.close()) }()
	}
	if err != nil {
		return err
	}
	field, err := grid.New(ctx, r.World, j.size, j.size, 1, j.by)
	if err != nil {
		return err
	}
	for i := range field.Rows {
		for c := range field.Columns {
			field.Row(i)[1+c] = j.start(field.Top+i, field.Left+c)
		}
	}
	before, err := total(ctx, r, field)
	if err != nil {
		return err
	}
	next := make([]float64, field.Rows*field.Columns)
	begun := r.Now().Seconds()
	for done := range j.steps {
		r.Progress(done, j.steps)
		if err := field.Exchange(ctx); err != nil {
			return err
		}
		step(field, next)
	}
	took := []float64{r.Now().Seconds() - begun}
	if err := world.AllReduceOp(ctx, r.World, took, took, world.Max); err != nil {
		return err
	}
	after, err := total(ctx, r, field)
	if err != nil {
		return err
	}
	wrong, err := j.verify(ctx, r, field, before, after)
	if err != nil {
		return err
	}
	r.Result("rate", 1e-6*float64(j.size)*float64(j.size)*float64(j.steps)/took[0], "Mel/s")
	r.Result("left", 100*after.heat/before.heat, "%")
	if j.file != "" {
		if err := j.draw(ctx, r, field, to); err != nil {
			return err
		}
	}
	if err := field.Close(); err != nil {
		return err
	}
	if wrong != "" {
		return fmt.Errorf("%w: %s", kernel.ErrVerification, wrong)
	}
	return nil
}

// start returns the initial heat of an element, 0 to 1.
func (j *job) start(row, column int) float64 {
	if j.pattern == sine {
		return j.wave(row) * j.wave(column)
	}
	heat := 0.0
	for _, spot := range [][3]float64{{0.3, 0.3, 0.15}, {0.6, 0.7, 0.2}, {0.8, 0.25, 0.08}} {
		y, x := (float64(row)+0.5)/float64(j.size)-spot[0], (float64(column)+0.5)/float64(j.size)-spot[1]
		if math.Hypot(x, y) < spot[2] {
			heat = 1
		}
	}
	return heat
}

// wave returns half a wave of a sine over the plate, which is zero at the edges.
func (j *job) wave(line int) float64 { return math.Sin(math.Pi * float64(line+1) / float64(j.size+1)) }

// step computes the plate after a step. The borders at the edges of the plate are always zero.
func step(field *grid.Field, next []float64) {
	columns := field.Columns
	for i := range field.Rows {
		above, line, below := field.Row(i - 1)[1:][:columns], field.Row(i), field.Row(i + 1)[1:][:columns]
		left, middle, right, out := line[:columns], line[1:][:columns], line[2:][:columns], next[i*columns:][:columns]
		for c := range out {
			out[c] = middle[c] + spread*(above[c]+below[c]+left[c]+right[c]-4*middle[c])
		}
	}
	for i := range field.Rows {
		copy(field.Row(i)[1:], next[i*columns:][:columns])
	}
}

// A sum is the total heat of a plate, and the greatest of an element.
type sum struct{ heat, most float64 }

func total(ctx context.Context, r *kernel.Rank, field *grid.Field) (sum, error) {
	heat, most := []float64{0}, []float64{0}
	for i := range field.Rows {
		for _, value := range field.Row(i)[1:][:field.Columns] {
			heat[0] += value
			most[0] = max(most[0], math.Abs(value))
		}
	}
	err := world.AllReduceOp(ctx, r.World, heat, heat, world.Sum)
	if err == nil {
		err = world.AllReduceOp(ctx, r.World, most, most, world.Max)
	}
	return sum{heat[0], most[0]}, err
}

// verify returns a description of what is wrong, the same on all ranks, or "".
func (j *job) verify(ctx context.Context, r *kernel.Rank, field *grid.Field, before, after sum) (string, error) {
	if j.pattern == spots {
		if after.heat > before.heat*(1+1e-9) || after.most > before.most {
			return fmt.Sprintf("the heat was %v, at most %v, and is %v, at most %v", before.heat, before.most, after.heat, after.most), nil
		}
		return "", nil
	}
	// The differences of a sine are sines.
	factor := math.Pow(1-4*spread*(1-math.Cos(math.Pi/float64(j.size+1))), float64(j.steps))
	off := []float64{0}
	for i := range field.Rows {
		for c := range field.Columns {
			off[0] = max(off[0], math.Abs(field.Row(i)[1+c]-factor*j.start(field.Top+i, field.Left+c)))
		}
	}
	if err := world.AllReduceOp(ctx, r.World, off, off, world.Max); err != nil {
		return "", err
	}
	if off[0] > 1e-9 {
		return fmt.Sprintf("an element is off by %v of what the wave has faded to", off[0]), nil
	}
	return "", nil
}

// draw makes rank 0 get the plate from all ranks, line by line, and write the picture.
func (j *job) draw(ctx context.Context, r *kernel.Rank, field *grid.Field, to *drawing) error {
	plate, err := window.Create(ctx, r.World, packed(field))
	if err != nil {
		return err
	}
	if err := plate.Fence(ctx); err != nil {
		return err
	}
	whole := make([]float64, 0, j.size*j.size)
	if r.Rank() == 0 {
		whole = whole[:cap(whole)]
		high, wide := grid.Arrange(r.Size())
		for rank := range r.Size() {
			top, bottom := grid.Block(j.size, rank/wide, high)
			left, right := grid.Block(j.size, rank%wide, wide)
			from := window.Contiguous((bottom - top) * (right - left))
			to := window.Strided(bottom-top, right-left, j.size)
			if err := plate.GetLayout(whole[top*j.size+left:], to, rank, 0, from); err != nil {
				return err
			}
		}
	}
	if err := plate.Fence(ctx, window.NoSucceed); err != nil {
		return err
	}
	if err := plate.Close(); err != nil {
		return err
	}
	if r.Rank() != 0 {
		return nil
	}
	return to.write(picture(whole, j.size))
}

// packed returns the block without its borders.
func packed(field *grid.Field) []float64 {
	block := make([]float64, 0, field.Rows*field.Columns)
	for i := range field.Rows {
		block = append(block, field.Row(i)[1:][:field.Columns]...)
	}
	return block
}

// picture returns an image from black over red and yellow to white for the greatest heat.
func picture(plate []float64, size int) image.Image {
	most := 0.0
	for _, heat := range plate {
		most = max(most, heat)
	}
	to := image.NewRGBA(image.Rect(0, 0, size, size))
	for at, heat := range plate {
		if most > 0 {
			heat /= most
		}
		part := func(from float64) uint8 { return uint8(255 * min(max(3*heat-from, 0), 1)) }
		to.SetRGBA(at%size, at/size, color.RGBA{part(0), part(1), part(2), 255})
	}
	return to
}

// A drawing is the file for the picture, before there is one.
type drawing struct {
	file *os.File
	// made is set if the file did not exist before, written if the picture is in it.
	made, written bool
}

// create makes rank 0 open the file, if one is requested, before any work. All ranks get an error if it cannot.
func (j *job) create(ctx context.Context, r *kernel.Rank) (d *drawing, err error) {
	if j.file == "" {
		return nil, nil
	}
	if r.Rank() == 0 {
		d, err = open(j.file)
	}
	failed := []bool{err != nil}
	told := world.Broadcast(ctx, r.World, 0, failed)
	if told == nil && failed[0] {
		// Rank 0 must not leave before all ranks know the reason.
		_ = r.Barrier(ctx)
	}
	switch {
	case err != nil:
		return nil, err
	case told == nil && failed[0]:
		return nil, &world.PeerError{Rank: 0, Cause: errors.New("it cannot make the file for the picture")}
	}
	return d, told
}

// open opens a file. Its contents stay until there is a picture.
func open(name string) (d *drawing, err error) {
	d = &drawing{made: true}
	d.file, err = os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if errors.Is(err, fs.ErrExist) {
		d.made = false
		d.file, err = os.OpenFile(name, os.O_WRONLY|os.O_CREATE, 0o666)
	}
	return d, err
}

func (d *drawing) write(drawn image.Image) error {
	// A file that is not regular, such as a pipe, has no length.
	if info, err := d.file.Stat(); err == nil && info.Mode().IsRegular() {
		if err := d.file.Truncate(0); err != nil {
			return err
		}
	}
	err := png.Encode(d.file, drawn)
	d.written = err == nil
	return err
}

// close closes the file. It removes a file that was made for a picture that does not exist.
func (d *drawing) close() error {
	err := d.file.Close()
	if d.made && (!d.written || err != nil) {
		err = errors.Join(err, os.Remove(d.file.Name()))
	}
	return err
}

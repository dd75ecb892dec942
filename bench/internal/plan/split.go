package plan

import "slices"

// ByCase splits jobs so that each has one case, as the peers run them.
func ByCase(jobs []Job) []Job {
	var split []Job
	for _, j := range jobs {
		for _, one := range j.Cells {
			i := slices.IndexFunc(split, func(other Job) bool { return other.Ranks == j.Ranks && other.Cells[0].Case.Name == one.Case.Name })
			if i < 0 {
				i = len(split)
				split = append(split, Job{Ranks: j.Ranks})
			}
			split[i].Cells = append(split[i].Cells, one)
		}
	}
	return split
}

package command

import "github.com/kiln-pipeline/kiln/processor"

// tellMemory reports the memory of a program to the job.
//
// Until it calls exec, a new process shares Kiln's memory, and Linux counts that as its own: a program that needs less
// than Kiln is reported with as much as Kiln. So a value that is not clearly larger than Kiln's is not reported.
func (p *proc) tellMemory(job processor.Job, peak int64) {
	if !clearlyMore(peak, p.own.Load()) { // Kiln's peak only grows
		return
	}
	own := ownPeak()
	p.own.Store(own)
	if clearlyMore(peak, own) {
		job.UsedMemory(peak)
	}
}

// clearlyMore allows a difference of an eighth, because each processor core keeps counters that are added later.
func clearlyMore(peak, own int64) bool { return peak > own+own/8 }

package command

import "github.com/kiln-pipeline/kiln/processor"

// tellMemory tells the job what a program took that did its work.
//
// Until it calls exec a new process shares Kiln's memory, and Linux counts that as its own: a program that takes less than
// Kiln is reported with as much as Kiln. So what is not clearly more than that is not told.
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

// clearlyMore leaves an eighth for counters that each processor core keeps for a while to itself.
func clearlyMore(peak, own int64) bool { return peak > own+own/8 }

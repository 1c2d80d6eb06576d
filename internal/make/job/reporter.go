package job

import "time"

// Reporter is called with the progress of a build, from several goroutines.
type Reporter interface {
	// Planned reports how many jobs will run; more may be added later.
	Planned(jobs int)
	JobStarted(job string)
	JobSuspended(job string, on []string, begins bool)
	// JobFinished is also called for jobs that never started because their results came from a cache.
	JobFinished(job string, failed bool, took time.Duration)
}

// Silent reports nothing.
type Silent struct{}

func (Silent) Planned(int)                             {}
func (Silent) JobStarted(string)                       {}
func (Silent) JobSuspended(string, []string, bool)     {}
func (Silent) JobFinished(string, bool, time.Duration) {}

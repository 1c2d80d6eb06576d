package job

import "time"

// Reporter is told what happens, from several goroutines.
type Reporter interface {
	// Planned tells how many jobs are known to run; more may come.
	Planned(jobs int)
	JobStarted(job string)
	JobSuspended(job string, on []string, begins bool)
	JobFinished(job string, failed bool, took time.Duration)
}

// Silent tells nobody.
type Silent struct{}

func (Silent) Planned(int)                             {}
func (Silent) JobStarted(string)                       {}
func (Silent) JobSuspended(string, []string, bool)     {}
func (Silent) JobFinished(string, bool, time.Duration) {}

package scale

import (
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/utils/ptr"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/env"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/measure/results"
)

func TestTargetsGrowWithClusters(t *testing.T) {
	g := NewWithT(t)
	l := limit{base: 50, atAnchor: 400}
	g.Expect(l.at(0)).To(BeEquivalentTo(50))
	g.Expect(l.at(350)).To(BeEquivalentTo(85))
	g.Expect(l.at(anchor)).To(BeEquivalentTo(400))
}

func TestShardHasItsShareOfTheTarget(t *testing.T) {
	g := NewWithT(t)
	whole, half := options{Options: results.Options{Clusters: anchor}}, options{Options: results.Options{Clusters: 2 * anchor}, shards: 2}
	g.Expect(whole.memoryLimit(env.ControlPlane)).To(BeEquivalentTo(400))
	g.Expect(half.memoryLimit(env.ControlPlane)).To(BeEquivalentTo(400))
	shared := options{Options: results.Options{Clusters: anchor}, foreign: 1}
	g.Expect(shared.memoryLimit(env.Bootstrap)).To(BeEquivalentTo(256 + foreignMemory))
	limited := options{Options: results.Options{Clusters: anchor}, memory: map[string]*int{env.Bootstrap: ptr.To(1000)}}
	g.Expect(limited.memoryFlag(env.Bootstrap)).To(BeEquivalentTo(1000))
	g.Expect(whole.memoryFlag(env.Bootstrap)).To(BeEquivalentTo(256 - beyond))
}

// good returns a report that meets all targets.
func good() *report {
	start := func() startReport {
		return startReport{QuietSeconds: 1, Managers: map[string]*managerReport{env.ControlPlane: {PeakMiB: 50}, env.Bootstrap: {PeakMiB: 50}}}
	}
	return &report{
		Start: start(), Restart: start(),
		Idle:      idleReport{Seconds: 60, CPUSeconds: map[string]float64{env.ControlPlane: 0.1, env.Bootstrap: 0.1}},
		Reactions: map[string]results.Quantiles{results.Reference: {P99: 200}, labelPropagated: {P99: 300}},
	}
}

func TestMissedTargets(t *testing.T) {
	for situation, change := range map[string]func(*report){
		"the control plane manager peaks in the restart": func(r *report) { r.Restart.Managers[env.ControlPlane].PeakMiB = 5000 },
		"the bootstrap manager peaks in the start":       func(r *report) { r.Start.Managers[env.Bootstrap].PeakMiB = 5000 },
		"goroutines for each connection":                 func(r *report) { r.Start.Managers[env.ControlPlane].Goroutines = 9000 },
		"a single write of a restart":                    func(r *report) { r.Restart.Managers[env.Bootstrap].Writes = 1 },
		"an object is read twice in a restart":           func(r *report) { r.Restart.Managers[env.ControlPlane].Repeated = 1 },
		"not quiet in time":                              func(r *report) { r.Start.QuietSeconds = 600 },
		"not quiet in time after a restart":              func(r *report) { r.Restart.QuietSeconds = 600 },
		"both managers together use processors in the idle time": func(r *report) {
			r.Idle.CPUSeconds = map[string]float64{env.ControlPlane: 0.6, env.Bootstrap: 0.6}
		},
		"a request to the hub in the idle time":                   func(r *report) { r.Idle.Hub = map[string]int{"get ": 1} },
		"a request to a cluster in the idle time":                 func(r *report) { r.Idle.SiteRequests = 1 },
		"a short idle time has a share of the limit":              func(r *report) { r.Idle.Seconds = 10 },
		"a reaction takes longer than two writes":                 func(r *report) { r.Reactions[labelPropagated] = results.Quantiles{P99: 401} },
		"with idle processors, a reaction takes more than 0.25 s": func(r *report) { r.Reactions[results.Reference] = results.Quantiles{P99: 1} },
	} {
		t.Run(situation, func(t *testing.T) {
			g := NewWithT(t)
			r := good()
			r.judge(options{Options: results.Options{Clusters: 200, Margin: 1}})
			g.Expect(r.Targets.Missed()).To(BeFalse())
			change(r)
			r.judge(options{Options: results.Options{Clusters: 200, Margin: 1}})
			g.Expect(r.Targets.Missed()).To(BeTrue())
		})
	}
}

func TestFirstStartMayWrite(t *testing.T) {
	g := NewWithT(t)
	r := good()
	r.Start.Managers[env.ControlPlane].Writes = 200
	r.judge(options{Options: results.Options{Clusters: 200, Margin: 1}})
	g.Expect(r.Targets.Missed()).To(BeFalse())
}

func TestMarginDoesNotRaiseZeroTargets(t *testing.T) {
	g := NewWithT(t)
	r := good()
	r.Start.QuietSeconds = quietLimit.at(200) * 1.2
	r.judge(options{Options: results.Options{Clusters: 200, Margin: 1}})
	g.Expect(r.Targets.Missed()).To(BeTrue())
	r.judge(options{Options: results.Options{Clusters: 200, Margin: 1.3}})
	g.Expect(r.Targets.Missed()).To(BeFalse())
	r.Restart.Managers[env.Bootstrap].Writes = 1
	r.judge(options{Options: results.Options{Clusters: 200, Margin: 1.3}})
	g.Expect(r.Targets.Missed()).To(BeTrue())
}

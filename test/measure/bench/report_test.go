package bench

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/env"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/measure/managers"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/measure/results"
)

func reactionsOf(milliseconds ...int) []reaction {
	var reactions []reaction
	for i, took := range milliseconds {
		reactions = append(reactions, reaction{
			handOver: hostBound, subject: fmt.Sprintf("ns/%d", i), took: time.Duration(took) * time.Millisecond,
			decisive: fact{what: agentDiscovered},
		})
	}
	return reactions
}

func TestStatistics(t *testing.T) {
	for name, test := range map[string]struct {
		of      []reaction
		want    results.Quantiles
		slowest []string
	}{
		"none": {},
		"one": {
			of: reactionsOf(7), want: results.Quantiles{Count: 1, P50: 7, P99: 7, Max: 7},
			slowest: []string{`ns/0: 7.0 ms after "Agent is known-unbound"`},
		},
		"only the slowest are named": {
			of: reactionsOf(1, 2, 5, 4, 3), want: results.Quantiles{Count: 5, P50: 3, P99: 5, Max: 5},
			slowest: []string{
				`ns/2: 5.0 ms after "Agent is known-unbound"`, `ns/3: 4.0 ms after "Agent is known-unbound"`,
				`ns/4: 3.0 ms after "Agent is known-unbound"`,
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(summarize(test.of)).To(Equal(statistics{Quantiles: test.want, Slowest: test.slowest}))
		})
	}
}

func TestTargetOfSuccessiveWrites(t *testing.T) {
	g := NewWithT(t)
	r := newReport(options{Options: results.Options{Clusters: 10}})
	add := func(measured map[string][]reaction) { r.addReactions(partMany, nil, measured, unmatched{}) }
	add(map[string][]reaction{results.Reference: reactionsOf(200), agentReference: reactionsOf(300)})
	g.Expect(r.reactionTarget(kubeconfigPublished, partMany)).To(Equal(400.0))
	g.Expect(r.reactionTarget(bootDataHandedOut, partMany)).To(Equal(800.0))
	g.Expect(r.reactionTarget(hostBound, partMany)).To(Equal(600.0),
		"a write to an Agent is compared with a reference write to an Agent")
	g.Expect(r.reactionTarget(hostBound, partOne)).To(Equal(250.0), "each part is compared with its own reference writes")
	add(map[string][]reaction{results.Reference: reactionsOf(10)})
	g.Expect(r.reactionTarget(bootDataHandedOut, partMany)).To(Equal(250.0), "the limit with idle processors")
}

// runOf returns a run of a phase of a cluster with five Machines.
func runOf(bootstrap, controlPlane, site int) phaseRun {
	return phaseRun{
		Cluster: "ns/c", Machines: 5, Seconds: 7, Site: requestCount{Total: site, By: map[string]int{"list nodes": site}},
		Managers: map[string]requestCount{
			env.Bootstrap:    {Total: bootstrap, By: map[string]int{"patch agents": bootstrap}},
			env.ControlPlane: {Total: controlPlane, By: map[string]int{"patch secrets": controlPlane}},
		},
	}
}

// good returns a report that meets all targets.
func good(o options) *report {
	r := newReport(o)
	all := map[string][]reaction{results.Reference: reactionsOf(200), agentReference: reactionsOf(200)}
	for _, handOver := range handOvers {
		all[handOver] = reactionsOf(10, 400)
	}
	r.addReactions(partOne, handOvers, all, unmatched{})
	r.addReactions(partMany, o.expected(), all, unmatched{})
	for _, name := range phases {
		r.addRun(name, phaseRun{Machines: 5})
	}
	r.AtOnce = atOnceReport{Machines: 6, Hub: 400, Sites: []int{1, 2, 3}}
	for _, name := range managers.Names {
		r.manager(name).One, r.manager(name).Many = costReport{PeakMiB: 50, CPUSeconds: 0.5}, costReport{PeakMiB: 50, CPUSeconds: 1}
	}
	r.Registry = registryReport{ByVersion: 1, ManyByVersion: 1}
	return r
}

func TestMissedTargets(t *testing.T) {
	for situation, test := range map[string]struct {
		change func(*report)
		sample string
		named  string
	}{
		"an act without a cause": {change: func(r *report) { r.Unexplained = []string{"one"} }, named: "acts without a cause"},
		"a cause without an act": {change: func(r *report) { r.Unanswered = []string{"one"} }, named: "causes without an act"},
		"a hand-over that was never seen": {
			change: func(r *report) { r.addReactions(partMany, []string{hostBound}, nil, unmatched{}) }, named: "never seen",
		},
		"a slow reaction of one cluster": {
			change: func(r *report) { r.Reactions[agentReleased] = reactionReport{One: summarize(reactionsOf(801))} }, named: agentReleased,
		},
		"a slow reaction at once": {
			change: func(r *report) { r.Reactions[kubeconfigPublished] = reactionReport{Many: summarize(reactionsOf(401))} },
			named:  kubeconfigPublished,
		},
		"requests of an installation": {
			change: func(r *report) { r.addRun(installation, runOf(100, 96, 0)) },
			named:  installation + ": requests to the hub",
		},
		"one request of an idle time": {
			change: func(r *report) { r.addRun(idleTime, runOf(1, 0, 0)) },
			named:  idleTime + ": requests to the hub",
		},
		"one in an idle cluster": {change: func(r *report) { r.addRun(idleTime, runOf(0, 0, 1)) }, named: idleTime + ": requests to the cluster"},
		"requests of a deletion": {change: func(r *report) { r.addRun(deletion, runOf(1000, 0, 0)) }, named: deletion},
		"requests to the cluster while a master is replaced": {
			change: func(r *report) { r.addRun(masterExchange, runOf(0, 0, 1000)) }, named: masterExchange + ": requests to the cluster",
		},
		"requests at once":        {change: func(r *report) { r.AtOnce.Hub = 3000 }, named: "at once: requests to the hub"},
		"requests to one of many": {change: func(r *report) { r.AtOnce.Sites = []int{1, 2, 1000} }, named: "at once: requests to a cluster"},
		"CPU of one installation": {
			change: func(r *report) { r.manager(env.ControlPlane).One.CPUSeconds = 2 }, named: "CPU seconds of one installation",
		},
		"memory of one installation": {
			change: func(r *report) { r.manager(env.Bootstrap).One.PeakMiB = 79 }, named: "peak memory of one installation",
		},
		"memory of the other manager": {change: func(r *report) { r.manager(env.Bootstrap).Many.PeakMiB = 500 }, named: "peak memory"},
		"a look-up of a digest":       {change: func(r *report) { r.Registry.ByDigest = 1 }, named: "by digest"},
		"a second look-up":            {change: func(r *report) { r.Registry.ManyByVersion = 2 }, named: "by version"},
		"more than half of two processors for 5,000 an hour": {
			change: func(r *report) { r.manager(env.Bootstrap).Many.CPUSeconds = 7.3 }, sample: singleNode, named: "CPU seconds",
		},
	} {
		t.Run(situation, func(t *testing.T) {
			g := NewWithT(t)
			o := options{Options: results.Options{Clusters: 10, Sample: cmp.Or(test.sample, sample), Margin: 1}}
			r := good(o)
			r.judge(o)
			g.Expect(r.Targets.Missed()).To(BeFalse(), "%v", r.Targets)
			test.change(r)
			r.judge(o)
			g.Expect(results.Publish(r, filepath.Join(t.TempDir(), "bench.json"), io.Discard)).To(MatchError(results.ErrMissed))
			missed := slices.DeleteFunc(slices.Clone(r.Targets), results.Target.Met)
			g.Expect(missed).To(ConsistOf(HaveField("What", ContainSubstring(test.named))))
		})
	}
}

func TestSkippedPartsAreNotJudged(t *testing.T) {
	g := NewWithT(t)
	o := options{Options: results.Options{Sample: sample, Margin: 1}}
	r := newReport(o)
	r.addReactions(partOne, nil, map[string][]reaction{
		results.Reference: reactionsOf(1), agentReference: reactionsOf(1),
		hostBound: reactionsOf(1),
	}, unmatched{})
	r.judge(o)
	g.Expect(r.Targets.Missed()).To(BeFalse(), "%v", r.Targets)
	g.Expect(r.Targets).NotTo(ContainElement(HaveField("What", ContainSubstring(partNames[partMany]))))
	g.Expect(r.Targets).NotTo(ContainElement(HaveField("What", ContainSubstring(installation))))
}

func TestMarginDoesNotRaiseZeroTargets(t *testing.T) {
	g := NewWithT(t)
	o := options{Options: results.Options{Clusters: 10, Sample: sample, Margin: 1.5}}
	r := good(o)
	r.addRun(installation, runOf(140, 100, 0))
	r.judge(o)
	g.Expect(r.Targets.Missed()).To(BeFalse(), "%v", r.Targets)
	r.addRun(idleTime, runOf(0, 1, 0))
	r.judge(o)
	g.Expect(r.Targets.Missed()).To(BeTrue())
}

func TestReportIsWrittenAndPrinted(t *testing.T) {
	g := NewWithT(t)
	o := options{Options: results.Options{Clusters: 10, Sample: sample, Margin: 1}}
	r := newReport(o)
	r.addRun(deletion, runOf(1, 2, 3))
	r.addRun(installation, runOf(100, 96, 9))
	r.addRun(installation, runOf(10, 4, 11))
	r.manager(env.Bootstrap).One = costReport{CPUSeconds: 0.5, PeakMiB: 50, AnonymousMiB: 20}
	r.manager(env.Bootstrap).Floor = costReport{CPUSeconds: 0.3, PeakMiB: 40, AnonymousMiB: 10}
	r.manager(env.Bootstrap).Many.CPUSeconds, r.manager(env.ControlPlane).Many.CPUSeconds, r.SecondsToAvailable.Many = 4, 4, 20
	r.addReactions(partOne, []string{kubeconfigPublished}, map[string][]reaction{hostBound: reactionsOf(10, 20)}, unmatched{})
	r.addReactions(partMany, nil, map[string][]reaction{hostBound: reactionsOf(251)}, unmatched{
		unexplained: []effect{{handOver: hostApproved, subject: "ns/a"}}, unanswered: []effect{{handOver: hostApproved, subject: "ns/b"}},
	})
	r.judge(o)
	path := filepath.Join(t.TempDir(), "below", "bench.json")
	var out bytes.Buffer
	g.Expect(results.Publish(r, path, &out)).To(MatchError(results.ErrMissed))

	content, err := os.ReadFile(path)
	g.Expect(err).NotTo(HaveOccurred())
	read := &report{}
	g.Expect(json.Unmarshal(content, read)).To(Succeed())
	g.Expect(read).To(Equal(r))
	g.Expect(read.Reactions).To(HaveLen(len(handOvers) + len(references) + len(byOthers)))

	g.Expect(out.String()).To(MatchRegexp(`Agent known-unbound -> bound +2 +10 +20 +20 +1 +251 +251 +251`))
	g.Expect(out.String()).To(MatchRegexp(`ONE INSTALLATION.*\n` +
		`bootstrap +0.5 +50 +20 +100\n +a program that only watches +0.3 +40 +10\n(.*\n)*both +0.5 +196\n`))
	g.Expect(out.String()).To(MatchRegexp(`CPU seconds of each cluster +0.8\n`))
	g.Expect(out.String()).To(MatchRegexp(`installed clusters in an hour +1800\n`))
	g.Expect(out.String()).To(MatchRegexp(`(?s)installation +2 +7 +7 +100 +96 +196 +0 +11 .*deletion +1 +7 +7 +1 +2 +3 +0 +3`),
		"phases in their order, with the worst run of each")
	g.Expect(out.String()).To(MatchRegexp(`patch agents +100 +0 +100 +0`))
	g.Expect(out.String()).To(MatchRegexp(`installation: requests to the hub +196 +195 +MISSED`))
	g.Expect(out.String()).To(MatchRegexp(`acts without a cause +1\n +at once: Agent bound and known -> approved: ns/a`))
	g.Expect(out.String()).To(MatchRegexp(`causes without an act +1\n +at once: Agent bound and known -> approved: ns/b`))
	g.Expect(out.String()).To(MatchRegexp(`never seen +\d\n(.*\n)* +one cluster: kubeconfig written -> published`))
}

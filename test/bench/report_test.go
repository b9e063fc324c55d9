package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/env"
)

func reactionsOf(milliseconds ...int) []reaction {
	var reactions []reaction
	for i, took := range milliseconds {
		reactions = append(reactions, reaction{
			handOver: hostBound, subject: fmt.Sprintf("ns/%d", i), took: time.Duration(took) * time.Millisecond, decisive: fact{what: agentDiscovered},
		})
	}
	return reactions
}

func TestStatistics(t *testing.T) {
	for name, test := range map[string]struct {
		of          []reaction
		median, max float64
		slowest     []string
	}{
		"none":           {},
		"one":            {of: reactionsOf(7), median: 7, max: 7, slowest: []string{`ns/0: 7.0 ms after "Agent is known-unbound"`}},
		"an odd number":  {of: reactionsOf(30, 10, 20), median: 20, max: 30},
		"an even number": {of: reactionsOf(40, 10, 20, 30), median: 25, max: 40},
		"only the slowest are named": {of: reactionsOf(1, 2, 3, 4, 5), median: 3, max: 5, slowest: []string{
			`ns/4: 5.0 ms after "Agent is known-unbound"`, `ns/3: 4.0 ms after "Agent is known-unbound"`, `ns/2: 3.0 ms after "Agent is known-unbound"`,
		}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			s := summarise(test.of)
			g.Expect(s.Count).To(Equal(len(test.of)))
			g.Expect(s.Median).To(Equal(test.median))
			g.Expect(s.Max).To(Equal(test.max))
			if test.slowest != nil {
				g.Expect(s.Slowest).To(Equal(test.slowest))
			}
		})
	}
}

// TestWritesThatFollowOneAnotherTakeTheirTime, each: what is told of them is over only beyond that.
func TestWritesThatFollowOneAnotherTakeTheirTime(t *testing.T) {
	g := NewWithT(t)
	many := func(f *reactionReport) *statistics { return &f.Many }
	r := newReport(options{clusters: 10})
	r.addReactions(map[string][]reaction{reference: reactionsOf(200), agentReference: reactionsOf(300)}, nil, many)
	g.Expect(r.reactionTarget(kubeconfigPublished, many)).To(Equal(400.0))
	g.Expect(r.reactionTarget(bootDataHandedOut, many)).To(Equal(800.0))
	g.Expect(r.reactionTarget(hostBound, many)).To(Equal(600.0), "what is written to an Agent is compared with what is written to an Agent")
	r.addReactions(map[string][]reaction{reference: reactionsOf(10)}, nil, many)
	g.Expect(r.reactionTarget(bootDataHandedOut, many)).To(Equal(250.0), "where processors are free it does not matter")
	for took, missed := range map[int]bool{250: false, 251: true} {
		r.addReactions(map[string][]reaction{reference: reactionsOf(10), bootDataHandedOut: reactionsOf(took)}, nil, many)
		g.Expect(r.missed()).To(Equal(missed), "%d ms", took)
	}
}

func TestTheReportTellsWhatIsOver(t *testing.T) {
	g := NewWithT(t)
	r := newReport(options{clusters: 10, sample: singleNode})
	r.manager(env.Bootstrap).Requests.Installation.Total = 100
	r.manager(env.ControlPlane).Requests.Installation.Total = 21
	r.manager(env.Bootstrap).Many.CPUSeconds, r.manager(env.ControlPlane).Many.CPUSeconds, r.SecondsToAvailable.Many = 4, 4, 20
	r.addReactions(map[string][]reaction{hostBound: reactionsOf(10, 20)}, nil, func(f *reactionReport) *statistics { return &f.One })
	r.addReactions(map[string][]reaction{hostBound: reactionsOf(251)}, []effect{{handOver: hostApproved, subject: "ns/a"}},
		func(f *reactionReport) *statistics { return &f.Many })
	path := filepath.Join(t.TempDir(), "below", "bench.json")
	g.Expect(r.write(path)).To(Succeed())

	content, err := os.ReadFile(path)
	g.Expect(err).NotTo(HaveOccurred())
	read := &report{}
	g.Expect(json.Unmarshal(content, read)).To(Succeed())
	g.Expect(read).To(Equal(r))
	g.Expect(read.Requests.Installation).To(Equal(121))
	g.Expect(read.Reactions).To(HaveLen(len(handOvers) + len(references) + len(byOthers)))

	var out bytes.Buffer
	g.Expect(r.print(&out, path)).To(Succeed())
	g.Expect(out.String()).To(MatchRegexp(`Agent known-unbound -> bound +2 +15 +20 +20 +250 +ok +1 +251 +251 +251 +250 +over`))
	g.Expect(out.String()).To(MatchRegexp(`kubeconfig written -> published +0 .* ok`))
	g.Expect(out.String()).To(MatchRegexp(`CPU seconds of each cluster +0.8\n`))
	g.Expect(out.String()).To(MatchRegexp(`that were installed +1800\n`))
	g.Expect(out.String()).To(MatchRegexp(`enough for, by that +4500 +5000 +over`))
	g.Expect(out.String()).To(MatchRegexp(`from apply to Available +100 +21 +121 +120 +over`))
	g.Expect(out.String()).To(ContainSubstring("unexplained"))
}

func TestWhatClustersAtOnceMiss(t *testing.T) {
	for situation, test := range map[string]struct {
		options         options
		write, reaction int // ms
		cpu             float64
		missed          bool
	}{
		"in time where processors are free":                  {options{clusters: 10, sample: sample}, 10, 250, 10, false},
		"in time beside slow writes":                         {options{clusters: 10, sample: sample}, 200, 400, 10, false},
		"slower than two writes":                             {options{clusters: 10, sample: sample}, 200, 401, 10, true},
		"more than half of two processors for 5,000 an hour": {options{clusters: 10, sample: singleNode}, 10, 10, 7.3, true},
		"less":                      {options{clusters: 10, sample: singleNode}, 10, 10, 7.1, false},
		"HA clusters may take more": {options{clusters: 10, sample: sample}, 10, 10, 100, false},
		"there were none":           {options{sample: sample}, 10, 1000, 100, false},
	} {
		t.Run(situation, func(t *testing.T) {
			r := newReport(test.options)
			r.manager(env.Bootstrap).Many.CPUSeconds = test.cpu
			r.addReactions(map[string][]reaction{agentReference: reactionsOf(test.write), hostBound: reactionsOf(test.reaction)}, nil,
				func(f *reactionReport) *statistics { return &f.Many })
			NewWithT(t).Expect(r.missed()).To(Equal(test.missed))
		})
	}
}

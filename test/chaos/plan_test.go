package main

import (
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

func TestSameSeedSamePlan(t *testing.T) {
	g := NewWithT(t)
	all := func(string) bool { return true }
	plans := func(seed uint64) (found []any) {
		p := newPlan(seed, 8, 5*time.Minute, all)
		for _, j := range p.journeys {
			found = append(found, j)
		}
		for _, a := range p.acts {
			found = append(found, a.at, a.act, a.dice.Uint64())
		}
		return found
	}
	g.Expect(plans(7)).To(Equal(plans(7)))
	g.Expect(plans(7)).NotTo(Equal(plans(8)))
}

func TestActsRepeatAfterAllOthers(t *testing.T) {
	g := NewWithT(t)
	p := newPlan(3, 1, 10*time.Minute, func(string) bool { return true })
	seen := map[string]bool{}
	for _, a := range p.acts[:len(actNames)] {
		g.Expect(seen[a.act]).To(BeFalse(), a.act)
		seen[a.act] = true
	}
	g.Expect(seen).To(HaveLen(len(acts)))
}

// The round that tests every change has all acts.
func TestShortStormHasEachAct(t *testing.T) {
	g := NewWithT(t)
	const storm = 75 * time.Second
	seen := map[string]bool{}
	for _, a := range newPlan(1, 5, storm, func(string) bool { return true }).acts {
		if a.at < storm*4/5 {
			seen[a.act] = true
		}
	}
	g.Expect(seen).To(HaveLen(len(acts)))
}

func TestSelectedActs(t *testing.T) {
	g := NewWithT(t)
	o := options{only: "kill-bootstrap,answer-lost"}
	p := newPlan(3, 1, time.Minute, o.wants)
	g.Expect(p.acts).NotTo(BeEmpty())
	for _, a := range p.acts {
		g.Expect(a.act).To(Equal("kill-bootstrap"))
	}
	g.Expect((&chaos{options: o}).rates(toClusters)).To(HaveLen(1))
	g.Expect((&chaos{options: o}).rates(toRegistry)).To(BeEmpty(), "it is no fault of a registry")
	g.Expect(newPlan(3, 1, time.Minute, (options{only: "none"}).wants).acts).To(BeEmpty())
}

func TestUnusedActsAndFaultsAreReportedByLongRuns(t *testing.T) {
	g := NewWithT(t)
	run := func(rounds, clusters int) *report {
		r := newReport(options{seed: 5, clusters: clusters, only: "delete-agent,edit-agent,answer-lost,belated,unavailable,hung"})
		r.Rounds, r.Planned = rounds, map[string]int{"delete-agent": 4, "edit-agent": 4}
		r.Acts["delete-agent"] = 1
		r.Faults["bootstrap"], r.Faults["controlplane"] = map[string]int{"answer-lost": 7, "belated": 0, "unavailable": 3},
			map[string]int{"answer-lost": 1, "belated": 0}
		r.Faults["controlplane-second"], r.Faults[toClusters] = map[string]int{"answer-lost": 0}, map[string]int{"answer-lost": 0}
		r.Faults[toRegistry], r.Faults[toService] = map[string]int{"hung": 1, "unavailable": 0}, map[string]int{"hung": 0, "unavailable": 0}
		r.end()
		return r
	}
	r := run(longRun, len(routes))
	g.Expect(r.Broken).To(ConsistOf(
		HaveField("What", "act edit-agent was tried 4 times, and never hit"),
		HaveField("What", "fault belated never happened"),
		HaveField("What", "fault unavailable of downloads never happened"),
		HaveField("What", "no fault happened on the connections of clusters"),
		HaveField("What", "no fault happened on the connections of assisted-service"),
	))
	var out strings.Builder
	r.print(&out, "chaos.json")
	g.Expect(out.String()).To(ContainSubstring("acts (hit of tried): delete-agent 1 of 4, edit-agent 0 of 4\n"),
		"acts that never hit are reported")
	g.Expect(out.String()).To(ContainSubstring("make chaos ROUNDS=4 CLUSTERS=9 CHAOS='-storm=0s -bound=0s "+
		"-only=delete-agent,edit-agent,answer-lost,belated,unavailable,hung' SEED=5\n"), "the complete run")
	g.Expect(run(longRun-1, len(routes)).broken()).To(BeFalse(), "too short for a finding")
	g.Expect(run(longRun, len(routes)-1).broken()).To(BeFalse(), "not all journeys ran")
}

// The printed command repeats the round of the violation, and no other.
func TestReportHasCommandThatRepeatsTheRound(t *testing.T) {
	g := NewWithT(t)
	r := newReport(options{seed: 5, rounds: 3, clusters: 4, storm: time.Minute, bound: 2 * time.Minute, only: "answer-lost"})
	r.Broken = []violation{{Rule: twiceRule, What: "4 Machines", Seed: 7}}
	var out strings.Builder
	r.print(&out, "chaos.json")
	g.Expect(out.String()).To(ContainSubstring("make chaos ROUNDS=1 CLUSTERS=4 CHAOS='-storm=1m0s -bound=2m0s -only=answer-lost' SEED=7\n"))
	g.Expect(r.broken()).To(BeTrue())
	r.options.operator = "real"
	g.Expect(r.again(7, 1)).To(HavePrefix("make chaos BMO=real ROUNDS=1 "), "with the same Bare Metal Operator")
}

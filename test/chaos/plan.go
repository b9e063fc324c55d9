package main

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

// plan is what a seed selects for a round, except for the faults.
type plan struct {
	seed     uint64
	journeys []journey
	acts     []planned
}

// journey is the history that a cluster goes through.
type journey struct {
	namespace string
	route
	// patience is the delay of a deletion before the cluster is installed.
	patience time.Duration
}

// route is a sample and the steps of its cluster.
type route struct {
	sample string
	steps  []step
}

// planned is an act at a time of the storm. The dice choose its target among the objects of that time.
type planned struct {
	at   time.Duration
	act  string
	dice *rand.Rand
}

// routes are assigned to clusters in turn. The first routes are in every round, so that a short run covers each
// kind of step.
var routes = []route{
	{"ha", []step{addWorker, install, replaceWorker, removeWorker, remove}},
	{"sno", []step{install, reapply, install, remove}},
	{"compact", []step{install, replaceMaster, remove}},
	{"ha-disk-image", []step{abandon}},
	{"compact", []step{install, remove}},
	{"sno", []step{linger, reapply, install, remove}},
	{"ha-disk-image", []step{install, addWorker, settle, remove}},
	{"static-network", []step{install, remove}},
	{"compact", []step{install, growMasters, shrinkMasters, remove}},
}

// Between two acts some time passes, in which the effects of the first become visible.
const (
	shortestRest, longestRest = 2 * time.Second, 7 * time.Second
	longestPatience           = 50 * time.Second
)

// newPlan plans a round.
func newPlan(seed uint64, clusters int, storm time.Duration, wants func(string) bool) plan {
	dice := rand.New(rand.NewPCG(seed, 0))
	p := plan{seed: seed}
	for i := range clusters {
		p.journeys = append(p.journeys, journey{
			namespace: fmt.Sprintf("chaos-%d-%d", seed, i), route: routes[i%len(routes)],
			patience: time.Duration(dice.Int64N(int64(longestPatience))),
		})
	}
	names := slices.DeleteFunc(slices.Clone(actNames), func(name string) bool { return !wants(name) })
	if len(names) == 0 || storm <= 0 {
		return p
	}
	// Each act happens once, in any order, before one is repeated, and early enough to hit.
	var deck []string
	longest := min(longestRest, storm*4/5/time.Duration(len(names)))
	for at := pause(dice, longest); at < storm; at += pause(dice, longest) {
		if len(deck) == 0 {
			deck = slices.Clone(names)
			dice.Shuffle(len(deck), func(i, j int) { deck[i], deck[j] = deck[j], deck[i] })
		}
		p.acts = append(p.acts, planned{at: at, act: deck[0], dice: rand.New(rand.NewPCG(seed, dice.Uint64()))})
		deck = deck[1:]
	}
	return p
}

func pause(dice *rand.Rand, longest time.Duration) time.Duration {
	return between(dice, min(shortestRest, longest/2), longest)
}

// between returns a random duration: at least shortest, less than longest.
func between(dice *rand.Rand, shortest, longest time.Duration) time.Duration {
	return shortest + time.Duration(dice.Int64N(int64(longest-shortest)))
}

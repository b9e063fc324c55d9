package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/env"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/env/unreliable"
)

const (
	// span is how long requests and reconciles are counted before they are judged.
	span = time.Minute
	// What a process may ask for in a minute, faults or not: of one object, and of a list, which all objects of a namespace may want.
	mostOfObject, mostOfList = 60, 120
)

// ownKinds are the kinds that managers reconcile, mostReconciles how often one of their objects may be in a minute on
// average: a control plane for all its Machines and their hosts. All reactions to what happens in an installation at
// the pace of the laboratory are part of it, which were 30 and 70 in storms.
var (
	ownKinds       = map[string]string{env.Bootstrap: "OpenshiftAssistedConfig", env.ControlPlane: "OpenshiftAssistedControlPlane"}
	mostReconciles = map[string]int{env.Bootstrap: 120, env.ControlPlane: 300}
)

// load is what was asked for in a minute, and how often.
type load struct {
	unreliable.Request

	Times int `json:"times"`
}

func (l load) String() string { return fmt.Sprintf("%s %s %d times", l.Method, l.Path, l.Times) }

// perMinute is how often something would happen in a minute.
func perMinute(n int, took time.Duration) int {
	return int(float64(n) * float64(time.Minute) / float64(took))
}

// heaviest is what was asked for most often, and overdone what was more often than anything is to be.
func heaviest(asked map[unreliable.Request]int, took time.Duration) (most load, overdone []load) {
	for request, n := range asked {
		l := load{request, perMinute(n, took)}
		if l.Times > most.Times {
			most = l
		}
		bound := mostOfObject
		if isList(request.Path) {
			bound = mostOfList
		}
		if l.Times > bound {
			overdone = append(overdone, l)
		}
	}
	return most, overdone
}

// isList tells the path of a list from that of an object.
func isList(path string) bool {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	skip := 3 // apis, group and version
	if parts[0] == "api" {
		skip = 2
	}
	parts = parts[min(skip, len(parts)):]
	if len(parts) > 2 && parts[0] == "namespaces" {
		parts = parts[2:]
	}
	return len(parts) == 1
}

// loads counts what the managers do.
type loads struct {
	*round

	begun time.Time
	// reconciles are those that each manager had made when it was asked last.
	reconciles map[string]int
}

// newLoads begins to count.
func newLoads(ctx context.Context, r *round) *loads {
	l := &loads{round: r, reconciles: map[string]int{}, begun: time.Now()}
	for _, way := range l.everyWay() {
		_ = way.Asked() // what came before counts no more
	}
	for _, name := range managers {
		_, _ = l.reconciled(ctx, name)
	}
	return l
}

// look judges what was done in the last minute; at the end of a round what was done since then, as if nothing had
// followed for the rest of it.
func (l *loads) look(ctx context.Context, end bool) {
	took := time.Since(l.begun)
	if took < span && !end {
		return
	}
	took = max(took, span)
	for who, way := range l.everyWay() {
		most, overdone := heaviest(way.Asked(), took)
		l.report.busy(who, most)
		for _, o := range overdone {
			l.follower.fail(loadRule, who+" asked for "+o.String()+" in a minute")
		}
	}
	l.begun = time.Now()
	for _, name := range managers {
		l.weigh(ctx, name, took)
	}
	l.follower.check(loadRule, 1)
}

// everyWay are the ways that our managers take, by who takes them: processes to the hub, and whoever reaches a cluster,
// which is Cluster API core as well.
func (l *loads) everyWay() map[string]*unreliable.Way {
	ways := map[string]*unreliable.Way{}
	for process, way := range l.own {
		ways[process] = way.Way
	}
	for server, way := range l.servers {
		ways["clients of the "+server] = way
	}
	for namespace, way := range l.toClusters {
		ways["clients of the cluster in "+namespace] = way
	}
	return ways
}

// patience is how long a manager may take to tell its metrics.
const patience = 5 * time.Second

// reconciled is how often a manager reconciled since it was asked last; false: nobody knows, as it is down, or was.
func (l *loads) reconciled(ctx context.Context, name string) (int, bool) {
	asking, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	n, err := l.lab.Env.Manager(name).Reconciles(asking)
	if err != nil {
		delete(l.reconciles, name)
		return 0, false
	}
	before, known := l.reconciles[name]
	l.reconciles[name] = n
	if n < before { // it was started again
		before = 0
	}
	return n - before, known
}

// weigh judges the reconciles of a manager.
func (l *loads) weigh(ctx context.Context, name string, took time.Duration) {
	objects := l.follower.alive(ownKinds[name])
	n, known := l.reconciled(ctx, name)
	if !known {
		return
	}
	times := perMinute(n, took) / max(objects, 1)
	l.report.busy("reconciles of "+name, load{unreliable.Request{Method: "each", Path: "object"}, times})
	if times > mostReconciles[name] {
		l.follower.fail(loadRule, fmt.Sprintf("%s reconciled each of its %d objects %d times in a minute", name, objects, times))
	}
}

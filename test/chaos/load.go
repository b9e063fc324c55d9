package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/env"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/env/faultproxy"
)

const (
	// span is how long requests and reconciles are counted before they are judged.
	span = time.Minute
	// The largest numbers of requests of a process per minute, with and without faults: for one object, and for
	// a list. All objects of a namespace may need the same list.
	mostOfObject, mostOfList = 60, 120
)

// ownKinds are the kinds that managers reconcile, and mostReconciles is the largest average number of reconciles
// of one object per minute. A control plane is reconciled for all its Machines and their hosts. The limits
// include all reactions to an installation at the pace of the laboratory; in storms they were 30 and 70.
var (
	ownKinds       = map[string]string{env.Bootstrap: "OpenshiftAssistedConfig", env.ControlPlane: "OpenshiftAssistedControlPlane"}
	mostReconciles = map[string]int{env.Bootstrap: 120, env.ControlPlane: 300}
)

// load is a request and its number per minute.
type load struct {
	faultproxy.Request

	Times int `json:"times"`
}

func (l load) String() string { return fmt.Sprintf("%s %s %d times", l.Method, l.Path, l.Times) }

// perMinute returns the number of events per minute.
func perMinute(n int, took time.Duration) int {
	return int(float64(n) * float64(time.Minute) / float64(took))
}

// heaviest returns the most frequent request, and the requests above their limit.
func heaviest(requested map[faultproxy.Request]int, took time.Duration) (most load, overdone []load) {
	for request, n := range requested {
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

// isList reports whether a path is that of a list, not of an object.
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

// loads counts the requests and reconciles of the managers.
type loads struct {
	*round

	begun time.Time
	// reconciles are the numbers of reconciles of each manager at the last query.
	reconciles map[string]int
}

// newLoads starts to count.
func newLoads(ctx context.Context, r *round) *loads {
	l := &loads{round: r, reconciles: map[string]int{}, begun: time.Now()}
	for _, conn := range l.connections() {
		_ = conn.TakeRequests() // earlier requests do not count
	}
	for _, name := range managers {
		_, _ = l.reconciled(ctx, name)
	}
	return l
}

// observe judges the requests and reconciles of the last minute. At the end of a round it judges the rest, as if no
// more had followed within the minute.
func (l *loads) observe(ctx context.Context, end bool) {
	took := time.Since(l.begun)
	if took < span && !end {
		return
	}
	took = max(took, span)
	for who, conn := range l.connections() {
		most, overdone := heaviest(conn.TakeRequests(), took)
		l.report.busy(who, most)
		for _, o := range overdone {
			l.follower.fail(loadRule, who+" requested "+o.String()+" in a minute")
		}
	}
	l.begun = time.Now()
	for _, name := range managers {
		l.judgeReconciles(ctx, name, took)
	}
	l.follower.check(loadRule, 1)
}

// connections returns the connections of our managers by their clients: processes to the hub, and all clients of a
// cluster, which include Cluster API core.
func (l *loads) connections() map[string]*faultproxy.Connection {
	conns := map[string]*faultproxy.Connection{}
	for process, conn := range l.own {
		conns[process] = conn.Connection
	}
	for server, conn := range l.servers {
		conns["clients of the "+server] = conn
	}
	for namespace, conn := range l.toClusters {
		conns["clients of the cluster in "+namespace] = conn
	}
	return conns
}

// patience is the timeout of a query of metrics.
const patience = 5 * time.Second

// reconciled returns the number of reconciles of a manager since the last query; false: unknown, because the
// manager is or was down.
func (l *loads) reconciled(ctx context.Context, name string) (int, bool) {
	queryCtx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	n, err := l.lab.Env.Manager(name).Reconciles(queryCtx)
	if err != nil {
		delete(l.reconciles, name)
		return 0, false
	}
	before, known := l.reconciles[name]
	l.reconciles[name] = n
	if n < before { // the manager was restarted
		before = 0
	}
	return n - before, known
}

// judgeReconciles judges the reconciles of a manager.
func (l *loads) judgeReconciles(ctx context.Context, name string, took time.Duration) {
	objects := l.follower.alive(ownKinds[name])
	n, known := l.reconciled(ctx, name)
	if !known {
		return
	}
	times := perMinute(n, took) / max(objects, 1)
	l.report.busy("reconciles of "+name, load{faultproxy.Request{Method: "each", Path: "object"}, times})
	if times > mostReconciles[name] {
		l.follower.fail(loadRule, fmt.Sprintf("%s reconciled each of its %d objects %d times in a minute", name, objects, times))
	}
}

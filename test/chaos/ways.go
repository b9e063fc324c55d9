package main

import (
	"context"
	"hash/fnv"
	"maps"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/env"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/env/gateway"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/env/lightapi"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/env/unreliable"
)

// The places of faults, beside the processes of managers: the ways to the API servers of clusters, the registry of
// release images, and what assisted-service offers for download.
const (
	toClusters = "clusters"
	toRegistry = "registry"
	toService  = "assisted-service"
)

// foreign are the managers of others whose ways to the hub are unreliable, with their ServiceAccounts.
var foreign = map[string]string{
	env.Core:   "capi-system:capi-manager",
	env.Metal3: "capm3-system:capm3-manager",
}

// madeForMachines are the API groups of what core makes for a Machine.
var madeForMachines = []string{"bootstrap.cluster.x-k8s.io", "infrastructure.cluster.x-k8s.io"}

// mild is the weather of those managers: what whoever talks to an API server has to get over. No write of theirs is
// carried out without being answered.
var mild = unreliable.Rates{
	unreliable.Conflict: 0.03, unreliable.TooManyRequests: 0.02, unreliable.ServerError: 0.03, unreliable.Unavailable: 0.02,
	unreliable.WatchBroken: 0.5, unreliable.WatchExpired: 0.15,
}

// makes tells the requests by which core makes a Machine, and what it makes for one. Where one fails, core v1.12
// deletes what it made before under that name, and begins again under another one; where that deletion fails as well,
// or the failed one is the read of an infra machine that somebody else just changed, config or infra machine stay
// without a Machine, for ever and whatever we do.
func makes(r *http.Request) bool {
	info, err := lightapi.Paths.NewRequestInfo(r)
	return err == nil && (r.Header.Get("Content-Type") == string(types.ApplyPatchType) ||
		slices.Contains(madeForMachines, info.APIGroup) && info.Verb != "list" && info.Verb != "watch")
}

// tells the requests by which CAPM3 says how a Metal3Machine is. Where one fails after its Node was found, v1.13 never
// says Metal3DataReady, whose Machine is not ready then, for ever and whatever we do (metal3machine_controller.go
// there: it sets the condition only when it looks for the Node by its label, which it does no more once the Node has
// its providerID).
func tells(r *http.Request) bool {
	info, err := lightapi.Paths.NewRequestInfo(r)
	return err == nil && info.Resource == "metal3machines" && info.Subresource == "status"
}

// weatherOf are the faults of a place.
func weatherOf(place string) unreliable.Rates {
	switch {
	case foreign[place] != "":
		return mild
	case place == toRegistry, place == toService:
		return unreliable.DownloadStorm
	}
	return unreliable.Storm
}

// ways are those of the whole run.
type ways struct {
	// own are those of the processes of our managers to the hub, others those of other managers; paths are their kubeconfigs.
	own, others map[string]*unreliable.HubWay
	paths       map[string]string
	// servers are those to what is no API server.
	servers map[string]*unreliable.Way
}

func newWays() ways {
	return ways{
		own: map[string]*unreliable.HubWay{}, others: map[string]*unreliable.HubWay{}, paths: map[string]string{},
		servers: map[string]*unreliable.Way{toRegistry: unreliable.New(), toService: unreliable.New()},
	}
}

// secondOf is the name of another process of a manager.
func secondOf(name string) string { return name + "-second" }

// openWays makes the ways of all processes to the hub, whose kubeconfig will be in dir.
func (w *ways) openWays(ctx context.Context, dir string) error {
	for _, name := range managers {
		for _, process := range []string{name, secondOf(name)} {
			if err := w.open(ctx, w.own, process, accounts[name], dir); err != nil {
				return err
			}
		}
	}
	for name, account := range foreign {
		if err := w.open(ctx, w.others, name, account, dir); err != nil {
			return err
		}
	}
	w.others[env.Core].Spared, w.others[env.Metal3].Spared = makes, tells
	return nil
}

// open makes the way of a process.
func (w *ways) open(ctx context.Context, to map[string]*unreliable.HubWay, process, account, dir string) error {
	way, err := unreliable.ToHub(ctx, account, filepath.Join(dir, "kubeconfig"))
	if err != nil {
		return err
	}
	to[process] = way
	w.paths[process], err = way.Kubeconfig(filepath.Join(dir, "ways", process))
	return err
}

// closeWays ends all connections to the hub.
func (w *ways) closeWays() {
	for _, all := range []map[string]*unreliable.HubWay{w.own, w.others} {
		for _, way := range all {
			way.Close()
		}
	}
}

// kubeconfig is the variable by which a process takes its way; there is none for one that has no way of its own.
func (w *ways) kubeconfig(process string) []string {
	if w.paths[process] == "" {
		return nil
	}
	return []string{"KUBECONFIG=" + w.paths[process]}
}

// manager has a manager take its way.
func (w *ways) manager(name string) env.ManagerOptions {
	return env.ManagerOptions{Env: w.kubeconfig(name)}
}

// beforeRegistry stands between the control plane manager, which alone asks it, and the registry.
func (w *ways) beforeRegistry(images http.Handler) http.Handler {
	return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		w.servers[toRegistry].Before(r.URL.Path, images).ServeHTTP(rw, r)
	})
}

// beforeDownload stands between the bootstrap manager and the discovery ignition of an InfraEnv. The id in its path is
// another one in each run.
func (w *ways) beforeDownload(infraEnv types.NamespacedName, next http.Handler) http.Handler {
	return w.servers[toService].Before(infraEnv.String(), next)
}

// everywhere are all ways, by their places. Those to clusters are one place.
func (r *round) everywhere() map[string][]*unreliable.Way {
	places := map[string][]*unreliable.Way{toClusters: slices.Collect(maps.Values(r.toClusters))}
	for _, all := range []map[string]*unreliable.HubWay{r.own, r.others} {
		for name, way := range all {
			places[name] = []*unreliable.Way{way.Way}
		}
	}
	for name, way := range r.servers {
		places[name] = []*unreliable.Way{way}
	}
	return places
}

// storm lets requests go wrong on all ways.
func (r *round) storm() {
	for place, all := range r.everywhere() {
		if place == toClusters {
			continue
		}
		for _, way := range all {
			way.Storm(r.seedOf(place), r.rates(place))
		}
	}
	for namespace := range r.toClusters {
		r.stormOf(namespace)
	}
}

// stormOf lets requests go wrong on the way to a cluster.
func (r *round) stormOf(namespace string) {
	r.toClusters[namespace].Storm(r.seedOf(namespace), r.rates(toClusters))
}

// seedOf is the seed of a place, or of the way to a cluster.
func (r *round) seedOf(place string) uint64 {
	sum := fnv.New32a()
	_, _ = sum.Write([]byte(place)) // never fails
	return r.seed + uint64(sum.Sum32())<<32
}

// toCluster is the way to the API server of a cluster. CAPM3 has another one, on which all goes well: where its write
// of a Node's providerID is not answered, v1.13 never says Metal3DataReady of the Metal3Machine, whose Machine is not
// ready then, for ever and whatever we do.
func (r *round) toCluster(namespace string) env.Pass {
	way := r.toClusters[namespace]
	return func(rw http.ResponseWriter, request *http.Request, transport http.RoundTripper, target *url.URL) {
		if strings.HasPrefix(request.UserAgent(), env.Metal3+"/") {
			gateway.Proxy(transport, target).ServeHTTP(rw, request)
			return
		}
		way.Pass(rw, request, transport, target)
	}
}

// calm ends the storm on all ways.
func (r *round) calm() {
	for _, all := range r.everywhere() {
		for _, way := range all {
			way.Calm()
		}
	}
}

// rates are those of the faults of a place that are wanted.
func (c *chaos) rates(place string) unreliable.Rates {
	rates := maps.Clone(weatherOf(place))
	maps.DeleteFunc(rates, func(fault unreliable.Fault, _ float64) bool { return !c.options.wants(string(fault)) })
	return rates
}

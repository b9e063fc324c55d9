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

// The places of faults other than the processes of managers: the API servers of clusters, the registry of
// release images, and the downloads of assisted-service.
const (
	toClusters = "clusters"
	toRegistry = "registry"
	toService  = "assisted-service"
)

// foreign are the foreign managers with faulty connections to the hub, with their ServiceAccounts.
var foreign = map[string]string{
	env.Core:   "capi-system:capi-manager",
	env.Metal3: "capm3-system:capm3-manager",
}

// madeForMachines are the API groups of the objects that core creates for a Machine.
var madeForMachines = []string{"bootstrap.cluster.x-k8s.io", "infrastructure.cluster.x-k8s.io"}

// mild are the faults of those managers: every client of an API server has to handle them. Each of their writes
// is either answered or not carried out.
var mild = unreliable.Rates{
	unreliable.Conflict: 0.03, unreliable.TooManyRequests: 0.02, unreliable.ServerError: 0.03, unreliable.Unavailable: 0.02,
	unreliable.WatchBroken: 0.5, unreliable.WatchExpired: 0.15,
}

// createsForMachine reports whether core creates a Machine or its objects with a request. If such a request fails, core
// v1.12 deletes the created objects and starts again with another name. If that deletion fails as well, config
// or infra machine stay without a Machine for ever. The same happens if the read of an infra machine fails that
// another client just changed.
func createsForMachine(r *http.Request) bool {
	info, err := lightapi.Paths.NewRequestInfo(r)
	return err == nil && (r.Header.Get("Content-Type") == string(types.ApplyPatchType) ||
		slices.Contains(madeForMachines, info.APIGroup) && info.Verb != "list" && info.Verb != "watch")
}

// writesMetal3MachineStatus reports whether CAPM3 writes the status of a Metal3Machine with a request. If that fails after its Node
// was found, v1.13 never sets Metal3DataReady, so that the Machine is never ready. It sets the condition only
// while it searches the Node by its label, which it does not do once the Node has its providerID
// (metal3machine_controller.go).
func writesMetal3MachineStatus(r *http.Request) bool {
	info, err := lightapi.Paths.NewRequestInfo(r)
	return err == nil && info.Resource == "metal3machines" && info.Subresource == "status"
}

// weatherOf returns the faults of a place.
func weatherOf(place string) unreliable.Rates {
	switch {
	case foreign[place] != "":
		return mild
	case place == toRegistry, place == toService:
		return unreliable.DownloadStorm
	}
	return unreliable.Storm
}

// conns are the connections of the whole run.
type connections struct {
	// own are the connections of our managers' processes to the hub, others those of foreign managers; paths are
	// their kubeconfigs.
	own, others map[string]*unreliable.HubWay
	paths       map[string]string
	// servers are the connections to servers other than API servers.
	servers map[string]*unreliable.Way
}

func newConnections() connections {
	return connections{
		own: map[string]*unreliable.HubWay{}, others: map[string]*unreliable.HubWay{}, paths: map[string]string{},
		servers: map[string]*unreliable.Way{toRegistry: unreliable.New(), toService: unreliable.New()},
	}
}

// secondOf returns the name of the second process of a manager.
func secondOf(name string) string { return name + "-second" }

// openConnections opens the connections of all processes to the hub, whose kubeconfig will be in dir.
func (w *connections) openConnections(ctx context.Context, dir string) error {
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
	w.others[env.Core].Spared, w.others[env.Metal3].Spared = createsForMachine, writesMetal3MachineStatus
	return nil
}

// open opens the connection of a process.
func (w *connections) open(ctx context.Context, to map[string]*unreliable.HubWay, process, account, dir string) error {
	conn, err := unreliable.ToHub(ctx, account, filepath.Join(dir, "kubeconfig"))
	if err != nil {
		return err
	}
	to[process] = conn
	w.paths[process], err = conn.Kubeconfig(filepath.Join(dir, "ways", process))
	return err
}

// closeConnections closes all connections to the hub.
func (w *connections) closeConnections() {
	for _, all := range []map[string]*unreliable.HubWay{w.own, w.others} {
		for _, way := range all {
			way.Close()
		}
	}
}

// kubeconfig returns the environment variable for the connection of a process; none if the process has no
// connection of its own.
func (w *connections) kubeconfig(process string) []string {
	if w.paths[process] == "" {
		return nil
	}
	return []string{"KUBECONFIG=" + w.paths[process]}
}

// manager returns the options with which a manager uses its connection.
func (w *connections) manager(name string) env.ManagerOptions {
	return env.ManagerOptions{Env: w.kubeconfig(name)}
}

// beforeRegistry adds faults between the control plane manager, which is its only client, and the registry.
func (w *connections) beforeRegistry(images http.Handler) http.Handler {
	return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		w.servers[toRegistry].Before(r.URL.Path, images).ServeHTTP(rw, r)
	})
}

// beforeDownload adds faults between the bootstrap manager and the discovery Ignition config of an InfraEnv. The
// faults are selected by the name, because the id in its path differs in each run.
func (w *connections) beforeDownload(infraEnv types.NamespacedName, next http.Handler) http.Handler {
	return w.servers[toService].Before(infraEnv.String(), next)
}

// everywhere returns all connections by their places. Those to clusters are one place.
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

// storm starts the faults on all connections.
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

// stormOf starts the faults on the connection to a cluster.
func (r *round) stormOf(namespace string) {
	r.toClusters[namespace].Storm(r.seedOf(namespace), r.rates(toClusters))
}

// seedOf returns the seed of a place, or of the connection to a cluster.
func (r *round) seedOf(place string) uint64 {
	sum := fnv.New32a()
	_, _ = sum.Write([]byte(place)) // never fails
	return r.seed + uint64(sum.Sum32())<<32
}

// toCluster returns the connection to the API server of a cluster. CAPM3 has another one without faults. If its
// write of a Node's providerID is not answered, v1.13 never sets Metal3DataReady of the Metal3Machine. Then the
// Machine is never ready.
func (r *round) toCluster(namespace string) env.Pass {
	conn := r.toClusters[namespace]
	return func(rw http.ResponseWriter, request *http.Request, transport http.RoundTripper, target *url.URL) {
		if strings.HasPrefix(request.UserAgent(), env.Metal3+"/") {
			gateway.Proxy(transport, target).ServeHTTP(rw, request)
			return
		}
		conn.Pass(rw, request, transport, target)
	}
}

// calm ends the faults on all connections.
func (r *round) calm() {
	for _, all := range r.everywhere() {
		for _, way := range all {
			way.Calm()
		}
	}
}

// rates returns the rates of the selected faults of a place.
func (c *chaos) rates(place string) unreliable.Rates {
	rates := maps.Clone(weatherOf(place))
	maps.DeleteFunc(rates, func(fault unreliable.Fault, _ float64) bool { return !c.options.wants(string(fault)) })
	return rates
}

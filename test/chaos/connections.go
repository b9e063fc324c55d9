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
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/env/faultproxy"
	"github.com/openshift-agent/cluster-api-provider-openshift-agent/test/env/lightapi"
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
var mild = faultproxy.Rates{
	faultproxy.Conflict: 0.03, faultproxy.TooManyRequests: 0.02, faultproxy.ServerError: 0.03, faultproxy.Unavailable: 0.02,
	faultproxy.WatchBroken: 0.5, faultproxy.WatchExpired: 0.15,
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
func weatherOf(place string) faultproxy.Rates {
	switch {
	case foreign[place] != "":
		return mild
	case place == toRegistry, place == toService:
		return faultproxy.DownloadStorm
	}
	return faultproxy.Storm
}

// conns are the connections of the whole run.
type connections struct {
	// own are the connections of our managers' processes to the hub, others those of foreign managers; paths are
	// their kubeconfigs.
	own, others map[string]*faultproxy.Proxy
	paths       map[string]string
	// servers are the connections to servers other than API servers.
	servers map[string]*faultproxy.Connection
}

func newConnections() connections {
	return connections{
		own: map[string]*faultproxy.Proxy{}, others: map[string]*faultproxy.Proxy{}, paths: map[string]string{},
		servers: map[string]*faultproxy.Connection{toRegistry: faultproxy.NewConnection(), toService: faultproxy.NewConnection()},
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
	w.others[env.Core].Exempt, w.others[env.Metal3].Exempt = createsForMachine, writesMetal3MachineStatus
	return nil
}

// open opens the connection of a process.
func (w *connections) open(ctx context.Context, to map[string]*faultproxy.Proxy, process, account, dir string) error {
	conn, err := faultproxy.Listen(ctx, account, filepath.Join(dir, "kubeconfig"))
	if err != nil {
		return err
	}
	to[process] = conn
	w.paths[process], err = conn.Kubeconfig(filepath.Join(dir, "connections", process))
	return err
}

// closeConnections closes all connections to the hub.
func (w *connections) closeConnections() {
	for _, all := range []map[string]*faultproxy.Proxy{w.own, w.others} {
		for _, conn := range all {
			conn.Close()
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
		w.servers[toRegistry].Wrap(r.URL.Path, images).ServeHTTP(rw, r)
	})
}

// beforeDownload adds faults between the bootstrap manager and the discovery Ignition config of an InfraEnv. The
// faults are selected by the name, because the id in its path differs in each run.
func (w *connections) beforeDownload(infraEnv types.NamespacedName, next http.Handler) http.Handler {
	return w.servers[toService].Wrap(infraEnv.String(), next)
}

// everywhere returns all connections by their places. Those to clusters are one place.
func (r *round) everywhere() map[string][]*faultproxy.Connection {
	places := map[string][]*faultproxy.Connection{toClusters: slices.Collect(maps.Values(r.toClusters))}
	for _, all := range []map[string]*faultproxy.Proxy{r.own, r.others} {
		for name, conn := range all {
			places[name] = []*faultproxy.Connection{conn.Connection}
		}
	}
	for name, conn := range r.servers {
		places[name] = []*faultproxy.Connection{conn}
	}
	return places
}

// storm starts the faults on all connections.
func (r *round) storm() {
	for place, all := range r.everywhere() {
		if place == toClusters {
			continue
		}
		for _, conn := range all {
			conn.Storm(r.seedOf(place), r.rates(place))
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
			faultproxy.Forward(transport, target).ServeHTTP(rw, request)
			return
		}
		conn.Pass(rw, request, transport, target)
	}
}

// calm ends the faults on all connections.
func (r *round) calm() {
	for _, all := range r.everywhere() {
		for _, conn := range all {
			conn.Calm()
		}
	}
}

// rates returns the rates of the selected faults of a place.
func (c *chaos) rates(place string) faultproxy.Rates {
	rates := maps.Clone(weatherOf(place))
	maps.DeleteFunc(rates, func(fault faultproxy.Fault, _ float64) bool { return !c.options.wants(string(fault)) })
	return rates
}

package conformance

import "context"

// twinRegistration stands for an installed cluster. clusterctl does not know it, and leaves it where it is.
var twinRegistration = kind{Group: "twin.example.com", Version: "v1", Kind: "TwinRegistration"}

// movable gives a twin a cluster that is moved, with what stands for it, and starts another hub that has none.
func (w *twin) movable(ctx context.Context) (there *twin) {
	w.t.Helper()
	there = newTwin(w.t)
	there.lacks, there.api, there.token = w.lacks, w.api, w.token // one provider, one cluster
	for _, hub := range []*twin{w, there} {
		hub.Kinds = []kind{twinRegistration}
		hub.fixtures.moved = hub.addCluster(moveNamespace, 1, 0)
	}
	w.add(`{apiVersion: twin.example.com/v1, kind: TwinRegistration, metadata: {namespace: %[1]s, name: %[1]s}}`, moveNamespace)
	w.begin()
	there.begin()
	there.remove(ctx, moveNamespace)
	return there
}

// carry moves the cluster to another hub, as clusterctl does: what is new there has no status.
func (w *twin) carry(ctx context.Context, there *twin) {
	w.pause(ctx, true)
	for _, k := range w.kinds {
		for _, o := range w.list(ctx, k, moveNamespace) {
			if k == twinRegistration || w.ofHosts(ctx, &o) {
				continue
			}
			there.arrive(ctx, &o)
			w.drop(ctx, &o)
			w.reconcile(ctx)
		}
	}
	there.pause(ctx, false)
}

func (w *twin) arrive(ctx context.Context, o *object) {
	arrived := o.DeepCopy()
	arrived.SetResourceVersion("")
	if k := o.GroupVersionKind(); k == twinConfig || k == twinControlPlane {
		delete(arrived.Object, "status")
	}
	if err := w.store.Create(ctx, arrived); err != nil {
		w.t.Error(err)
	}
	w.reconcile(ctx)
}

// pause pauses the cluster that is moved, or lets it go on.
func (w *twin) pause(ctx context.Context, paused bool) {
	w.change(ctx, w.stored(ctx, clusterKind, moveNamespace, moveNamespace), func(now *object) {
		now.Object["spec"].(map[string]any)["paused"] = paused
	})
	w.reconcile(ctx)
}

// lookForMachines makes Machines for a control plane that has just arrived, if it knows those that it has by its status alone.
func (w *twin) lookForMachines(ctx context.Context, controlPlane *object) {
	if !w.lacks["recognition"] || controlPlane.Object["status"] != nil {
		return
	}
	another := w.of("Machine", moveNamespace, moveNamespace+"-0").DeepCopy()
	another.SetName(moveNamespace + "-1")
	another.SetUID(another.GetUID() + "-another")
	if err := w.store.Create(ctx, another); err != nil {
		w.t.Error(err)
	}
}

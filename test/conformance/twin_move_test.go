package conformance

import "context"

// twinRegistration is the kind that stands for an installed cluster. clusterctl does not move it.
var twinRegistration = kind{Group: "twin.example.com", Version: "v1", Kind: "TwinRegistration"}

// movable adds a cluster to a twin that can be moved, with its registration, and starts another hub without it.
func (w *twin) movable(ctx context.Context) (there *twin) {
	w.t.Helper()
	there = newTwin(w.t)
	there.defects, there.api, there.token = w.defects, w.api, w.token // one provider, one cluster
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

// carry moves the cluster to another hub, as clusterctl does: moved objects have no status.
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

// pause pauses the moved cluster, or ends the pause.
func (w *twin) pause(ctx context.Context, paused bool) {
	w.change(ctx, w.stored(ctx, clusterKind, moveNamespace, moveNamespace), func(now *object) {
		now.Object["spec"].(map[string]any)["paused"] = paused
	})
	w.reconcile(ctx)
}

// createDuplicates creates Machines for a control plane that has just arrived, if it recognizes its Machines by
// its status alone.
func (w *twin) createDuplicates(ctx context.Context, controlPlane *object) {
	if !w.defects["recognition"] || controlPlane.Object["status"] != nil {
		return
	}
	another := w.of("Machine", moveNamespace, moveNamespace+"-0").DeepCopy()
	another.SetName(moveNamespace + "-1")
	another.SetUID(another.GetUID() + "-another")
	if err := w.store.Create(ctx, another); err != nil {
		w.t.Error(err)
	}
}

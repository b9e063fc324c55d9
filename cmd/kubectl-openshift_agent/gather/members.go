package gather

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/openshift-agent/cluster-api-provider-openshift-agent/cmd/kubectl-openshift_agent/snapshot"
)

// members returns the objects of the cluster, and the objects of its namespace that no other cluster uses, such as
// free hosts. An object belongs to another cluster by its label, its owner, or the object that uses it.
func members(cluster string, objects map[string][]unstructured.Unstructured) map[string][]unstructured.Unstructured {
	f := foreign{cluster: cluster, uids: map[types.UID]bool{}, names: map[string]bool{}}
	for f.grow(objects) {
		continue
	}
	kept, images := map[string][]unstructured.Unstructured{}, imageSetsOf(objects[groupTitle(groupInstall, kindInstall)], &f)
	for _, title := range slices.Sorted(maps.Keys(objects)) {
		for i := range objects[title] {
			o := &objects[title][i]
			if f.has(o) || title == kindEvent && f.isAbout(o) || o.GetKind() == kindImageSet && !images[o.GetName()] {
				continue
			}
			kept[title] = append(kept[title], *o)
		}
	}
	return kept
}

func groupTitle(group, name string) string { return kind{group: group, name: name}.title() }

// imageSetsOf returns the names of the ClusterImageSets of AgentClusterInstalls that belong to no other cluster.
func imageSetsOf(installs []unstructured.Unstructured, f *foreign) map[string]bool {
	names := map[string]bool{}
	for i := range installs {
		if name, _, _ := unstructured.NestedString(installs[i].Object, "spec", "imageSetRef", "name"); name != "" && !f.has(&installs[i]) {
			names[name] = true
		}
	}
	return names
}

// foreign are the objects of other clusters.
type foreign struct {
	cluster string
	uids    map[types.UID]bool
	// names are kinds with names.
	names map[string]bool
}

func (f *foreign) has(o *unstructured.Unstructured) bool { return f.names[o.GetKind()+"/"+o.GetName()] }

// grow adds the objects that follow from those that are known. It returns whether there were any.
func (f *foreign) grow(objects map[string][]unstructured.Unstructured) bool {
	grown := false
	for title := range objects {
		for i := range objects[title] {
			o := &objects[title][i]
			if title != kindEvent && !f.has(o) && f.follows(o) {
				grown, f.names[o.GetKind()+"/"+o.GetName()] = true, true
				if o.GetUID() != "" {
					f.uids[o.GetUID()] = true
				}
			}
		}
	}
	return grown
}

// follows reports whether an object belongs to another cluster.
func (f *foreign) follows(o *unstructured.Unstructured) bool {
	if o.GetKind() == snapshot.KindCluster {
		return o.GetName() != f.cluster
	}
	if name, labeled := o.GetLabels()[clusterv1.ClusterNameLabel]; labeled {
		return name != f.cluster
	}
	for _, owner := range o.GetOwnerReferences() {
		if f.uids[owner.UID] {
			return true
		}
	}
	for _, user := range []struct{ kind, field string }{
		{"", "consumerRef"}, {kindDeployment, "clusterDeploymentName"}, {kindDeployment, "clusterDeploymentRef"}, {kindDeployment, "clusterRef"},
	} {
		reference, _, _ := unstructured.NestedMap(o.Object, "spec", user.field)
		name, _ := reference["name"].(string)
		kind := user.kind
		if kind == "" {
			kind, _ = reference["kind"].(string)
		}
		if name != "" && f.names[kind+"/"+name] {
			return true
		}
	}
	return false
}

// isAbout reports whether an event is about an object of another cluster.
func (f *foreign) isAbout(event *unstructured.Unstructured) bool {
	involved, _, _ := unstructured.NestedStringMap(event.Object, "involvedObject")
	return f.names[involved["kind"]+"/"+involved["name"]]
}

package lab

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ChangeTopology changes the topology of the cluster with one write, like "kubectl edit".
func (c *Cluster) ChangeTopology(ctx context.Context, change func(*clusterv1.Topology) error) error {
	cluster := &clusterv1.Cluster{}
	if err := c.lab.Client().Get(ctx, c.Key(), cluster); err != nil {
		return fmt.Errorf("cannot read Cluster %s: %w", c.Key(), err)
	}
	before := client.MergeFrom(cluster.DeepCopy())
	if err := change(&cluster.Spec.Topology); err != nil {
		return err
	}
	if err := c.lab.Client().Patch(ctx, cluster, before); err != nil {
		return fmt.Errorf("cannot change the topology of %s: %w", c.Key(), err)
	}
	return nil
}

// SetTopologyVariable sets a variable of a topology, and adds a missing one.
func SetTopologyVariable(topology *clusterv1.Topology, name string, value any) error {
	encoded, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("cannot encode variable %s: %w", name, err)
	}
	variable := clusterv1.ClusterVariable{Name: name, Value: apiextensionsv1.JSON{Raw: encoded}}
	at := slices.IndexFunc(topology.Variables, func(v clusterv1.ClusterVariable) bool { return v.Name == name })
	if at < 0 {
		topology.Variables = append(topology.Variables, variable)
	} else {
		topology.Variables[at] = variable
	}
	return nil
}

// RequestRelease requests a release in a topology: the Kubernetes version of the release, and the variables of the sample
// clusterclass.
func RequestRelease(topology *clusterv1.Topology, version, release, channel string) error {
	topology.Version = version
	if err := SetTopologyVariable(topology, "distributionVersion", release); err != nil {
		return err
	}
	return SetTopologyVariable(topology, "upgradeChannel", channel)
}

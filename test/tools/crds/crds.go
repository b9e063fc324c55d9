// Package crds requires the Go types of assisted-service and Hive, from which tests generate CustomResourceDefinitions.
// Its module has libraries of its own: the admission webhooks next to the types of assisted-service need
// controller-runtime v0.22 or older.
package crds

import (
	_ "github.com/openshift/assisted-service/api/hiveextension/v1beta1" // AgentClusterInstall
	_ "github.com/openshift/assisted-service/api/v1beta1"               // Agent, InfraEnv, NMStateConfig
	_ "github.com/openshift/hive/apis/hive/v1"                          // ClusterDeployment, ClusterImageSet
)

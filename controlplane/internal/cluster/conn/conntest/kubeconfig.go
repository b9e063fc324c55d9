// Package conntest creates kubeconfigs for the tests of packages that connect to workload clusters.
package conntest

import (
	"testing"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// Kubeconfig returns a kubeconfig with a token for a server.
func Kubeconfig(t *testing.T, server string, change func(*clientcmdapi.Config)) []byte {
	t.Helper()
	config := clientcmdapi.Config{
		CurrentContext: "admin",
		Clusters:       map[string]*clientcmdapi.Cluster{"c": {Server: server, InsecureSkipTLSVerify: true}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{"admin": {Token: "secret-token"}},
		Contexts:       map[string]*clientcmdapi.Context{"admin": {Cluster: "c", AuthInfo: "admin"}},
	}
	if change != nil {
		change(&config)
	}
	content, err := clientcmd.Write(config)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

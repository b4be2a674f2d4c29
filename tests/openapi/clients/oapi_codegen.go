// The client that oapi-codegen makes: submits, is a duplicate, claims, finishes.
package main

import (
	"context"
	"fmt"
	"os"
	"reflect"

	"example.org/hapax-client/hapax"
)

func require(condition bool, what any) {
	if !condition {
		fmt.Fprintln(os.Stderr, what)
		os.Exit(1)
	}
}

func pointer[T any](value T) *T { return &value }

func main() {
	background := context.Background()
	client, err := hapax.NewClientWithResponses(os.Args[1])
	require(err == nil, err)

	request := hapax.SubmitRequest{Type: "greet", Queue: pointer("oapi-codegen"), Input: map[string]any{"name": "Ada"}}
	submit := func(key string) *hapax.SubmitTaskResponse {
		answer, err := client.SubmitTaskWithResponse(background, &hapax.SubmitTaskParams{IdempotencyKey: &key}, request)
		require(err == nil, err)
		return answer
	}
	created := submit("greet-go").JSON201
	require(created != nil && created.Created, "the first is created")
	duplicate := submit("\"greet-go\"").JSON200
	require(duplicate != nil && !duplicate.Created, "the second is a duplicate")

	wanted := hapax.ClaimRequest{Queues: &[]string{"oapi-codegen"}, Wait: pointer("5s")}
	claimed, err := client.ClaimWithResponse(background, nil, wanted)
	require(err == nil && claimed.JSON200 != nil && len(claimed.JSON200.Claims) == 1, "one is claimed")
	claim := claimed.JSON200.Claims[0]
	require(reflect.DeepEqual(claim.Execution.Input, map[string]any{"name": "Ada"}), claim)
	item := hapax.FinishItem{Lease: claim.Lease, Result: map[string]any{"greeting": "Hello Ada"}}
	finished, err := client.FinishWithResponse(background, nil, hapax.FinishRequest{Outcomes: []hapax.FinishItem{item}})
	require(err == nil && finished.JSON200 != nil && *finished.JSON200.Outcomes[0].Ok, "it is finished")

	params := &hapax.GetTaskResultParams{Wait: pointer("5s")}
	result, err := client.GetTaskResultWithResponse(background, created.Execution.Id, params)
	require(err == nil && result.JSON200 != nil && result.JSON200.Status == hapax.StatusCompleted, "it is completed")
	require(reflect.DeepEqual(result.JSON200.Result, map[string]any{"greeting": "Hello Ada"}), result.JSON200)
}

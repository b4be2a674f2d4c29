import java.util.List;
import java.util.Map;
import java.util.Set;
import org.openapitools.client.ApiClient;
import org.openapitools.client.api.ClaimsApi;
import org.openapitools.client.api.TasksApi;
import org.openapitools.client.model.*;

/** The client that OpenAPI Generator makes for Java: submits, is a duplicate, claims, finishes. */
public class GeneratorJava {
  static void require(boolean condition, Object what) {
    if (!condition) throw new AssertionError(what);
  }

  public static void main(String[] arguments) throws Exception {
    ApiClient client = new ApiClient();
    client.updateBaseUri(arguments[0]);
    TasksApi tasks = new TasksApi(client);
    ClaimsApi claims = new ClaimsApi(client);

    SubmitRequest request = new SubmitRequest().type("greet").queue("generator-java").input(Map.of("name", "Ada"));
    Receipt receipt = tasks.submitTask(request, "greet-java", null);
    require(receipt.getCreated(), receipt);
    require(!tasks.submitTask(request, "\"greet-java\"", null).getCreated(), "the second is a duplicate");

    Claim claim = claims.claim(new ClaimRequest().queues(Set.of("generator-java")).wait("5s"), null).getClaims().get(0);
    require(claim.getExecution().getInput().equals(Map.of("name", "Ada")), claim);
    FinishItem item = new FinishItem().lease(claim.getLease()).result(Map.of("greeting", "Hello Ada"));
    FinishAnswer answer = claims.finish(new FinishRequest().outcomes(List.of(item)), null);
    require(answer.getOutcomes().get(0).getOk(), answer);

    Result result = tasks.getTaskResult(receipt.getExecution().getId(), "5s", null);
    require(result.getStatus() == Status.COMPLETED, result);
    require(result.getResult().equals(Map.of("greeting", "Hello Ada")), result);
  }
}

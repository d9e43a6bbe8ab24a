// Failover.java: java Failover.java
import java.net.URI;
import java.net.http.*;
import java.util.regex.Pattern;

class Failover {
    static String ask(String path, String body) throws Exception {
        var request = HttpRequest.newBuilder(URI.create(System.getenv("KVIEW_HTTP_URL") + path))
            .header("Authorization", "Bearer " + System.getenv("KVIEW_HTTP_TOKEN"));
        if (body != null) request.POST(HttpRequest.BodyPublishers.ofString(body));
        var answer = HttpClient.newHttpClient().send(request.build(), HttpResponse.BodyHandlers.ofString());
        if (answer.statusCode() != 200) throw new AssertionError(answer.body());
        return answer.body();
    }

    static int leader(String json) {  // or any JSON library
        var found = Pattern.compile("\"leader\":(-?\\d+)").matcher(json);
        return found.find() ? Integer.parseInt(found.group(1)) : -1;
    }

    public static void main(String[] arguments) throws Exception {
        ask("/topics", "{\"name\": \"java-orders\"}");
        int first = leader(ask("/topics/java-orders", null));
        ask("/commands", "crash " + first);
        ask("/commands", "fence-now " + first);
        int second = leader(ask("/wait/leader", "{\"topic\": \"java-orders\", \"other_than\": " + first + "}"));
        System.out.println(first + " -> " + second);
        ask("/heal", "");
    }
}

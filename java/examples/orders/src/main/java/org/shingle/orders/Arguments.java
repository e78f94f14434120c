package org.shingle.orders;

import java.util.HashMap;
import java.util.Map;

/**
 * The arguments of a program: options, each with a value, and properties of the stores.
 *
 * @param options the value of each option
 * @param properties what {@code --set NAME=VALUE} gave
 */
public record Arguments(Map<String, String> options, Map<String, String> properties) {
    /**
     * Reads arguments.
     *
     * @param usual every option with the value that it has without an argument
     * @throws IllegalArgumentException an argument is no option, or has no value
     */
    public static Arguments of(String[] arguments, Map<String, String> usual) {
        Map<String, String> options = new HashMap<>(usual);
        Map<String, String> properties = new HashMap<>();
        for (int n = 0; n < arguments.length; n += 2) {
            boolean isSet = arguments[n].equals("--set");
            if (n + 1 == arguments.length || !(isSet || options.containsKey(arguments[n]))) {
                throw new IllegalArgumentException(arguments[n] + ": there are --set and "
                        + options.keySet().stream().sorted().toList() + ", each with a value");
            }
            if (isSet) {
                String[] pair = arguments[n + 1].split("=", 2);
                if (pair.length < 2) {
                    throw new IllegalArgumentException("--set needs NAME=VALUE, not "
                            + arguments[n + 1]);
                }
                properties.put(pair[0], pair[1]);
            } else {
                options.put(arguments[n], arguments[n + 1]);
            }
        }
        return new Arguments(options, properties);
    }
}
